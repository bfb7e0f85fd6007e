"""When a node may be given back."""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.observer import sight
from simulator.observer.promise import Promises, Violation
from simulator.observer.transcript import Write
from simulator.observer.world import engine, repair, replay


@dataclass(slots=True)
class _Case:
    """What happened on a node since it was held."""

    repaired: bool = False
    proven: bool = False


def release(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Our hold comes off only after a verify that passed, begun after the last step.

    Where no step was taken it may also come off when no condition of ours states a fault.
    """
    cases: dict[str, _Case] = {}
    steps: dict[str, int] = {}
    for write, world in replay(writes):
        if step := repair(write):
            case = cases.setdefault(step.node, _Case())
            case.repaired, case.proven = True, False
            steps[step.node] = steps.get(step.node, 0) + 1
        _note_verify(write, cases, steps)
        before = world.nodes.get(write.name, {}) if write.resource == "nodes" else {}
        if not (write.done and sight.hold(before) is not None and write.resource == "nodes"):
            continue
        if write.verb == "delete" or sight.hold(write.response) is not None:
            continue
        case = cases.pop(write.name, _Case())
        if engine(write) and not case.proven and (case.repaired or sight.faults(before)):
            why = "after a step" if case.repaired else "with its fault standing"
            what = f"{write.name} released {why}, and no verify had passed"
            yield Violation("release", write.at, what)


def _note_verify(write: Write, cases: dict[str, _Case], steps: dict[str, int]) -> None:
    """A verify pod proves a node if no step began after it was created."""
    if write.resource != "pods" or not write.done:
        return
    pod = sight.step_pod(write.response)
    if pod is None or pod.step != "verify":
        return
    if write.verb == "create":
        steps[f"{pod.node} {pod.name}"] = steps.get(pod.node, 0)
    elif write.subresource == "status" and sight.result(write.response) == "done":
        current = steps.get(f"{pod.node} {pod.name}") == steps.get(pod.node, 0)
        cases.setdefault(pod.node, _Case()).proven = current
