"""The incidents of a run, and how each ended, by what was done and not by what the engine says.

A mark opens an incident. Its mark taken off by the engine ends it: repaired if a repair was begun
in it, else recovered; cancelled where the fault still stands, or where somebody had taken the hold
off for good. Taken off by somebody else: cancelled. Gone with its Node: replaced if its machine was
given back for it, else superseded; and open again if the same machine comes back and is marked.
Only a hand-off, in which nothing more is done, is told by the engine's own Event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from simulator.observer import sight
from simulator.observer.promise import Violation
from simulator.observer.transcript import Write
from simulator.observer.world import engine, repair, replay

ENDS = ("recovered", "repaired", "replaced", "handed_off", "cancelled", "superseded")
AWAY = ("replaced", "superseded")
"""Ends of an incident whose Node is gone."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident. `end` is empty while it is open; `steps` are the repairs begun in it.

    `let_go`: somebody else took the hold off, and it is not back.
    """

    id: str
    node: str
    fault: str
    opened: datetime
    steps: tuple[str, ...] = ()
    end: str = ""
    ended: datetime | None = None
    machine: str = ""
    let_go: bool = False


def incidents(writes: list[Write]) -> list[Incident]:
    """All incidents in the order of their opening."""
    cases = _Cases()
    for write, world in replay(writes):
        if not write.done:
            continue
        if write.resource == "nodes":
            cases.note_node(write, world.nodes.get(write.name, {}))
        elif write.resource == "events" and engine(write):
            cases.note_hand_off(write)
        else:
            cases.note_step(write, world.nodes)
    return list(cases.found.values())


def unended(writes: list[Write]) -> list[Violation]:
    """Every incident ends or is handed off."""
    return [
        Violation("ended", writes[-1].at, f"incident {each.id} of {each.node} has no end")
        for each in incidents(writes)
        if not each.end
    ]


class _Cases:
    """Incidents by the first mark of each; `marks` maps every mark to that."""

    def __init__(self) -> None:
        self.found: dict[str, Incident] = {}
        self._marks: dict[str, str] = {}
        self._operations: set[str] = set()

    def note_node(self, write: Write, before: sight.Json) -> None:
        """A Node was written: marks come and go, and holds."""
        old = sight.mark(before)
        new = None if write.verb == "delete" else sight.mark(write.response)
        if new and str(new["id"]) not in self._marks and engine(write):
            self._open(str(new["id"]), write)
        if old and (new is None or not self._same(str(old["id"]), str(new["id"]))):
            self._close(str(old["id"]), write, before)
        elif new:
            self._note_hold(str(new["id"]), write, before)

    def note_step(self, write: Write, nodes: Mapping[str, sight.Json]) -> None:
        """A repair began. By several means it is one: they share the operation."""
        step = repair(write)
        mark = sight.mark(nodes.get(step.node, {})) if step else None
        incident = self._of(str(mark["id"])) if mark else None
        if step is None or incident is None or step.operation in self._operations:
            return
        self._operations.add(step.operation)
        self.found[incident.id] = replace(incident, steps=(*incident.steps, step.step))

    def note_hand_off(self, write: Write) -> None:
        """The engine said that a person has it."""
        incident = self._of(sight.handed_off(write.response))
        if incident and not incident.end:
            self.found[incident.id] = replace(incident, end="handed_off", ended=write.at)

    def _same(self, old: str, new: str) -> bool:
        """Whether two marks are of one incident, which took a fresh one over."""
        return self._marks.get(old) == self._marks.get(new)

    def _of(self, mark: str) -> Incident | None:
        return self.found.get(self._marks.get(mark, ""))

    def _open(self, mark: str, write: Write) -> None:
        machine = sight.machine(write.response)
        for known in self.found.values():
            if machine and known.machine == machine and known.end in AWAY:
                self._marks[mark] = known.id
                self.found[known.id] = replace(known, end="", ended=None)
                return
        fault = sight.hold(write.response) or ""
        self._marks[mark] = mark
        self.found[mark] = Incident(mark, write.name, fault, write.at, machine=machine)

    def _close(self, mark: str, write: Write, before: sight.Json) -> None:
        incident = self._of(mark)
        if incident:
            end = _end(incident, write, before)
            self.found[incident.id] = replace(incident, end=end, ended=write.at)

    def _note_hold(self, mark: str, write: Write, before: sight.Json) -> None:
        incident = self._of(mark)
        held, holds = sight.hold(before) is not None, sight.hold(write.response) is not None
        if incident and held and not holds and not engine(write):
            self.found[incident.id] = replace(incident, let_go=True)
        elif incident and holds and not held:
            self.found[incident.id] = replace(incident, let_go=False, end="", ended=None)


def _end(incident: Incident, write: Write, before: sight.Json) -> str:
    if write.verb == "delete":
        return "replaced" if "replace" in incident.steps else "superseded"
    if not engine(write) or incident.let_go:
        return "cancelled"
    if incident.steps:
        return "repaired"
    return "cancelled" if sight.faults(before) else "recovered"
