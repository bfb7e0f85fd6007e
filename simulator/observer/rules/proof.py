"""What must be so before a node is given to work, and what only a computation can tell of a GPU."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.observer import sight
from simulator.observer.promise import Promises, Violation
from simulator.observer.transcript import Write
from simulator.observer.world import World, engine, replay

PROOFS = "prove-"
"""Begins the names of operations of a proof."""
IN_SERVICE = "sweep"
"""The taint's value on a node that served before we looked: it may serve again unproven."""
COMPUTED = "wrong-results"
"""The fault that nothing but comparing results shows."""


@dataclass(slots=True)
class _Unproven:
    """A node that takes no work: in which boot, proofs that began in it, and whether one passed."""

    boot: str
    begun: set[str] = field(default_factory=set)
    passed: bool = False


def proof(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """A new node, or one that was found sick by a look, takes work only when a proof has passed.

    It was begun, and passed, while the node carried the taint and in the same boot. A person may
    take the taint off on their word.
    """
    waiting: dict[str, _Unproven] = {}
    for write, world in replay(writes):
        if write.resource == "pods" and write.done:
            _note_proof(write, waiting)
            if name := _works(write, world):
                yield Violation("proof", write.at, f"{write.name} works on {name}, unproven")
        if write.resource == "nodes" and write.done:
            before = sight.unproven(world.nodes.get(write.name, {}))
            after = None if write.verb == "delete" else sight.unproven(write.response)
            freed = before not in (None, IN_SERVICE) and after in (None, IN_SERVICE)
            known = waiting.get(write.name)
            if freed and write.verb != "delete" and engine(write) and not (known and known.passed):
                yield Violation("proof", write.at, f"{write.name} takes work, and no proof passed")
            _note_taint(write, after, waiting)


def _note_taint(write: Write, why: str | None, waiting: dict[str, _Unproven]) -> None:
    """A taint that comes, and a boot under it, begin anew."""
    if why is None:
        waiting.pop(write.name, None)
        return
    boot = sight.boot_id(write.response)
    known = waiting.get(write.name)
    if known is None or known.boot != boot:
        waiting[write.name] = _Unproven(boot)


def _note_proof(write: Write, waiting: dict[str, _Unproven]) -> None:
    pod = sight.step_pod(write.response)
    known = waiting.get(pod.node) if pod else None
    if pod is None or known is None or not pod.operation.startswith(PROOFS):
        return
    if write.verb == "create" and not write.subresource:
        known.begun.add(pod.name)
    elif pod.name in known.begun and sight.result(write.response) == "done":
        known.passed = True


def _works(write: Write, world: World) -> str:
    """The unproven node on which this write has a pod of a workload begin; empty for any other.

    On a node that was in service a pod may still come that was placed before the taint was seen.
    """
    if write.verb != "create" or write.subresource not in ("", "binding"):
        return ""
    pod = write.response if not write.subresource else write.request
    name = str((pod.get("spec") or {}).get("nodeName") or (pod.get("target") or {}).get("name", ""))
    why = sight.unproven(world.nodes.get(name, {}))
    if why in (None, IN_SERVICE) or not sight.workload(pod) or sight.tolerates_all(pod):
        return ""
    return name


def computed(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """A GPU is said to compute wrong only once a step on its node has computed with it and seen.

    No counter and no flag of a driver says so: whoever knows it otherwise guesses. The agent reads
    what the step leaves, and may tell before the step's own end is known: so the step must have
    begun before, and have found it, whenever it says so.
    """
    found = _found_by_computing(writes)
    for at, (write, world) in enumerate(replay(writes)):
        if not write.done or write.resource != "nodes" or write.verb == "delete":
            continue
        before = sight.stated(world.nodes.get(write.name, {}))
        for part, fault in sorted(sight.stated(write.response) - before):
            if fault == COMPUTED and found.get((write.name, part), at) >= at:
                what = f"{write.name} says {fault} of {part}, which nobody computed with"
                yield Violation("computed", write.at, what)


def _found_by_computing(writes: list[Write]) -> dict[tuple[str, str], int]:
    """Where in the transcript the first step began that computed with a part and found it wrong."""
    begun: dict[str, int] = {}
    found: dict[tuple[str, str], int] = {}
    for at, write in enumerate(writes):
        pod = sight.step_pod(write.response) if write.resource == "pods" and write.done else None
        if pod is None:
            continue
        begun.setdefault(pod.name, at)
        if sight.result(write.response) == "failed":
            for check, part, fault in sight.found(write.response):
                if (check, fault) == ("compute", COMPUTED):
                    found.setdefault((pod.node, part), begun[pod.name])
    return found
