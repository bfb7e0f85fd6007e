"""Tells a run as it goes, from the audit alone: one sentence for each write that matters."""

from collections.abc import Iterator

from simulator.observer import sight
from simulator.observer.sight import Json
from simulator.observer.transcript import MACHINES, NOTICES, Write
from simulator.observer.world import World, engine, eviction


class Narrator:
    """Reads writes in their order; `node` and sentence for each that people want to see."""

    def __init__(self) -> None:
        self.world = World()
        self._breakers: dict[str, str] = {}

    def tell(self, write: Write) -> Iterator[tuple[str, str]]:
        """What is to be said of one write, as (node, sentence)."""
        if write.done and write.resource == "nodes" and write.verb != "delete":
            before = self.world.nodes.get(write.name, {})
            for sentence in _of_node(before, write.response, engine(write)):
                yield write.name, sentence
        elif write.done and write.resource == "pods":
            yield from self._of_pod(write)
        elif write.resource == MACHINES:
            yield write.name, _of_machine(write)
        elif write.done and write.resource == "events" and engine(write):
            yield from _of_event(write.response)
        elif write.done and write.resource == "configmaps":
            yield from self._of_breakers(write.response)
        elif write.resource == NOTICES and write.request.get("matter") == "storm":
            yield "", f"people are told: {write.request.get('title', '')}"
        elif write.code == 429 and eviction(write):
            yield self._place(write), f"eviction of {write.name} refused by its budget"
        self.world.take(write)

    def _of_pod(self, write: Write) -> Iterator[tuple[str, str]]:
        if eviction(write):
            yield self._place(write), f"{write.name} evicted"
            return
        pod = sight.step_pod(write.response)
        if pod is None:
            return
        if write.verb == "create" and not write.subresource:
            yield pod.node, f"{pod.step} begun ({pod.operation})"
        before = self.world.pods.get((write.namespace, write.name), {})
        said = sight.result(write.response)
        if said and said != sight.result(before):
            yield pod.node, f"{pod.step} {said}"

    def _of_breakers(self, record: Json) -> Iterator[tuple[str, str]]:
        for scope, phase in sight.breakers(record).items():
            if self._breakers.get(scope, "closed") != phase:
                yield "", f"the breaker of {scope} is {phase}"
            self._breakers[scope] = phase

    def _place(self, write: Write) -> str:
        pod = self.world.pods.get((write.namespace, write.name), {})
        return str((pod.get("spec") or {}).get("nodeName", ""))


def _of_machine(write: Write) -> str:
    successor = write.request.get("successor", "")
    return f"{write.verb} by the provider" + (f": {successor}" if successor else "")


_EVENTS = {
    "IncidentWaits": "waits for the budget",
    "IncidentHandedOff": "handed to a person",
}


def _of_event(event: Json) -> Iterator[tuple[str, str]]:
    """What is seen in no other object; the first time that it is said."""
    said = _EVENTS.get(str(event.get("reason", "")))
    if said and event.get("count", 1) == 1:
        yield str((event.get("involvedObject") or {}).get("name", "")), said


def _of_node(before: Json, after: Json, by_engine: bool) -> Iterator[str]:
    for name in sorted(sight.faults(after) - sight.faults(before)):
        yield f"says {name}"
    for name in sorted(sight.faults(before) - sight.faults(after)):
        yield f"no longer says {name}"
    old, new = sight.boot_id(before), sight.boot_id(after)
    if old and new != old:
        yield f"has booted ({new[:8]})"
    if before and sight.ready(before) and not sight.ready(after):
        yield "is not ready"
    yield from _of_proof(before, after, by_engine)
    yield from _of_hold(before, after, by_engine)


_UNPROVEN = {
    "sweep": "is swept: no new work until its checks have passed",
    "found": "failed its proof: takes no work",
}


def _of_proof(before: Json, after: Json, by_engine: bool) -> Iterator[str]:
    old, new = sight.unproven(before), sight.unproven(after)
    who = "" if by_engine else " by somebody else's word"
    if new is not None and new != old:
        yield _UNPROVEN.get(new, "is new: no work until its checks have passed")
    if old is not None and new is None:
        yield f"takes work{who}"


def _of_hold(before: Json, after: Json, by_engine: bool) -> Iterator[str]:
    old, new = sight.hold(before), sight.hold(after)
    who = "" if by_engine else " by somebody else"
    if old is None and new is not None:
        yield f"held for {new}{who}"
    if old is not None and new is None:
        yield f"released{who}"
    if sight.mark(before) and not sight.mark(after):
        yield f"incident closed{who}"
