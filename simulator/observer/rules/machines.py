"""What must be so of a machine and its pods before it is forced, taken down or given back."""

from collections.abc import Iterator

from simulator.observer import sight
from simulator.observer.promise import Promises, Violation
from simulator.observer.transcript import MACHINES, Write
from simulator.observer.world import World, engine, node_of, repair, replay

OFF = ("stop", "terminate")
"""Changes after which a machine does nothing any more."""


def grace(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No workload's pod is forced while its machine may run: each gets the time that it asked for.

    Only where the provider was made to switch the machine off may a pod be removed at once.
    """
    off: set[str] = set()
    for write, world in replay(writes):
        node = node_of(write, world)
        if write.resource == MACHINES:
            (off.add if write.verb in OFF else off.discard)(node)
        if not (engine(write) and write.resource == "pods") or node in off:
            continue
        options = write.request.get("deleteOptions") or write.request
        pod = world.pods.get((write.namespace, write.name), {})
        if options.get("gracePeriodSeconds") == 0 and sight.step_pod(pod) is None:
            yield Violation("grace", write.at, f"{write.what} was given no time to end")


def drained(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No reset, reboot or replacement begins while a workload's pod is on the node.

    From a node that does not answer nothing can be drained.
    """
    for write, world in replay(writes):
        step = repair(write)
        if step is None or not sight.ready(world.nodes.get(step.node, {})):
            continue
        left = _workloads(world, step.node)
        if left:
            what = f"{step.step} of {step.node} while {', '.join(left)} was there"
            yield Violation("drained", write.at, what)


def approved(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No machine is given back before its incident asked, and a person said yes, both by Event."""
    asked: set[str] = set()
    agreed: set[str] = set()
    for write, world in replay(writes):
        if write.resource == "events" and write.done:
            asked |= {sight.asked(write.response)} if engine(write) else set()
            agreed |= {sight.agreed(write.response)} if sight.person(write.user) else set()
        if write.resource == MACHINES and write.verb == "terminate":
            mark = str((sight.mark(world.nodes.get(write.name, {})) or {}).get("id", ""))
            if mark not in asked:
                yield Violation("approved", write.at, f"{write.name} given back, nobody was asked")
            elif write.name not in agreed:
                yield Violation("approved", write.at, f"{write.name} given back, nobody agreed")


def _workloads(world: World, node: str) -> list[str]:
    return [
        str(sight.metadata(pod).get("name")) for pod in world.pods_on(node) if sight.workload(pod)
    ]
