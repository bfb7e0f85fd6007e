"""The incidents of a run, and how each ended, by what was done and not by what the engine says.

A mark opens an incident. Its mark taken off by the engine ends it: repaired if a reset or reboot
was begun in it, else recovered. Taken off by somebody else: cancelled. Gone with its Node:
superseded. Only a hand-off, in which nothing more is done, is told by the engine's own Event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from simulator.observer import sight
from simulator.observer.promise import Violation
from simulator.observer.transcript import Write
from simulator.observer.world import engine, replay

ENDS = ("recovered", "repaired", "replaced", "handed_off", "cancelled", "superseded")


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident. `end` is empty while it is open; `steps` are the repairs begun in it."""

    id: str
    node: str
    fault: str
    opened: datetime
    steps: tuple[str, ...] = ()
    end: str = ""
    ended: datetime | None = None


def incidents(writes: list[Write]) -> list[Incident]:
    """All incidents in the order of their opening."""
    found: dict[str, Incident] = {}
    for write, world in replay(writes):
        if not write.done:
            continue
        if write.resource == "nodes":
            _note_mark(found, write, sight.mark(world.nodes.get(write.name, {})))
        elif write.resource == "pods" and write.verb == "create" and not write.subresource:
            _note_step(found, write, world.nodes)
        elif write.resource == "events" and engine(write):
            _note_hand_off(found, write)
    return list(found.values())


def unended(writes: list[Write]) -> list[Violation]:
    """Every incident ends or is handed off."""
    return [
        Violation("ended", writes[-1].at, f"incident {each.id} of {each.node} has no end")
        for each in incidents(writes)
        if not each.end
    ]


def _note_mark(found: dict[str, Incident], write: Write, before: sight.Json | None) -> None:
    after = None if write.verb == "delete" else sight.mark(write.response)
    if after and str(after["id"]) not in found and engine(write):
        identity = str(after["id"])
        fault = sight.hold(write.response) or ""
        found[identity] = Incident(identity, write.name, fault, write.at)
    if before and (after is None or after["id"] != before["id"]) and str(before["id"]) in found:
        incident = found[str(before["id"])]
        found[incident.id] = replace(incident, end=_end(incident, write), ended=write.at)


def _end(incident: Incident, write: Write) -> str:
    if write.verb == "delete":
        return "superseded"
    if not engine(write):
        return "cancelled"
    return "repaired" if incident.steps else "recovered"


def _note_step(found: dict[str, Incident], write: Write, nodes: Mapping[str, sight.Json]) -> None:
    pod = sight.step_pod(write.response)
    mark = sight.mark(nodes.get(pod.node, {})) if pod else None
    if pod and mark and pod.step in sight.REPAIRS and str(mark["id"]) in found:
        incident = found[str(mark["id"])]
        found[incident.id] = replace(incident, steps=(*incident.steps, pod.step))


def _note_hand_off(found: dict[str, Incident], write: Write) -> None:
    identity = sight.handed_off(write.response)
    if identity in found:
        found[identity] = replace(found[identity], end="handed_off", ended=write.at)
