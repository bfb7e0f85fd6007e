"""The incidents of a run: opened by a mark on a node, ended by the word of the engine's Event."""

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
    marked: bool = True


def incidents(writes: list[Write]) -> list[Incident]:
    """All incidents in the order of their opening."""
    found: dict[str, Incident] = {}
    for write, world in replay(writes):
        if not write.done:
            continue
        if write.resource == "nodes" and engine(write):
            _note_mark(found, write, sight.mark(world.nodes.get(write.name, {})))
        elif write.resource == "pods" and write.verb == "create" and not write.subresource:
            _note_step(found, write, world.nodes)
        elif write.resource == "events" and engine(write):
            _note_end(found, write)
    return list(found.values())


def unended(writes: list[Write]) -> list[Violation]:
    """Every incident ends or is handed off, and a mark is taken off exactly by an end."""
    return [
        Violation("ended", each.ended or writes[-1].at, f"incident {each.id} of {each.node} {why}")
        for each in incidents(writes)
        if (why := _amiss(each))
    ]


def _amiss(incident: Incident) -> str:
    if not incident.end:
        return "has no end"
    if incident.marked and incident.end != "handed_off":
        return f"ended as {incident.end}, and its mark is still there"
    return ""


def _note_mark(found: dict[str, Incident], write: Write, before: sight.Json | None) -> None:
    after = sight.mark(write.response)
    if after and str(after["id"]) not in found:
        identity = str(after["id"])
        fault = sight.hold(write.response) or ""
        found[identity] = Incident(identity, write.name, fault, write.at)
    if before and (after is None or after["id"] != before["id"]):
        identity = str(before["id"])
        if identity in found:
            found[identity] = replace(found[identity], marked=False)


def _note_step(found: dict[str, Incident], write: Write, nodes: Mapping[str, sight.Json]) -> None:
    pod = sight.step_pod(write.response)
    mark = sight.mark(nodes.get(pod.node, {})) if pod else None
    if pod and mark and pod.step in sight.REPAIRS and str(mark["id"]) in found:
        incident = found[str(mark["id"])]
        found[incident.id] = replace(incident, steps=(*incident.steps, pod.step))


def _note_end(found: dict[str, Incident], write: Write) -> None:
    end, identity = sight.end(write.response)
    if end in ENDS and identity in found:
        found[identity] = replace(found[identity], end=end, ended=write.at)
