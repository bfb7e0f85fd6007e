"""What the engine may do to a node and its pods, and what must be so before."""

from collections.abc import Iterator

from simulator.observer import sight
from simulator.observer.promise import Promises, Violation
from simulator.observer.transcript import Write
from simulator.observer.world import (
    World,
    disrupts,
    engine,
    eviction,
    node_of,
    replay,
)


def held(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Nothing is disrupted on a node before our hold is on it."""
    for write, world in replay(writes):
        node = node_of(write, world)
        if disrupts(write) and sight.hold(world.nodes.get(node, {})) is None:
            yield Violation("held", write.at, f"{write.what} on {node}, which was not held")


NO_ACCUSATION = {"monitor-silent", "unknown-code"}
"""Faults that say only that nobody knows: they may hold a node, and justify no harm."""


def unknown(writes: list[Write], promises: Promises) -> Iterator[Violation]:
    """Nothing is disrupted unless, since the hold, some condition stated a fault positively.

    A kubelet that is silent, or says that it is not ready, accuses its own node.
    """
    accused: dict[str, bool] = {}
    for write, world in replay(writes):
        node = node_of(write, world)
        before = world.nodes.get(node, {})
        if disrupts(write) and not (accused.get(node) or _accused(before, promises)):
            yield Violation(
                "unknown", write.at, f"{write.what} on {node}, where no fault was known"
            )
        if write.done and write.resource == "nodes":
            held_now = sight.hold(write.response) is not None
            known = _accused(write.response, promises) or _accused(before, promises)
            accused[node] = held_now and (accused.get(node, False) or known)


def _accused(node: sight.Json, promises: Promises) -> bool:
    by_agent = sight.faults(node) - NO_ACCUSATION
    return bool(by_agent) or not sight.ready(node) or sight.accused(node, promises.foreign)


def confirmed(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Nothing is disrupted unless, since the hold, a check of our own on the node has failed.

    A node that does not answer can run none; there the kubelet's silence is the second witness.
    """
    seen: set[str] = set()
    for write, world in replay(writes):
        node = node_of(write, world)
        before = world.nodes.get(node, {})
        if disrupts(write) and node not in seen and sight.ready(before):
            what = f"{write.what} on {node}, where no check had confirmed a fault"
            yield Violation("confirmed", write.at, what)
        pod = sight.step_pod(write.response) if write.resource == "pods" and write.done else None
        if pod and pod.step == "verify" and sight.result(write.response) == "failed":
            seen.add(pod.node)
        if write.done and write.resource == "nodes" and sight.hold(write.response) is None:
            seen.discard(node)


def evidence(writes: list[Write], promises: Promises) -> Iterator[Violation]:
    """A node is held only for a fault that its conditions state, so never for an application's."""
    for write, world in replay(writes):
        if not (write.done and engine(write) and write.resource == "nodes"):
            continue
        before = world.nodes.get(write.name, {})
        name = sight.hold(write.response)
        if name is None or sight.hold(before) is not None:
            continue
        if sight.accused(before, promises.foreign) or sight.opened(before) == name:
            continue
        if _returns(write, world):
            continue
        if name not in sight.faults(before) | _unsaid(before):
            what = f"{write.name} held for {name or 'nothing'}, which no condition stated"
            yield Violation("evidence", write.at, what)


def _returns(write: Write, world: World) -> bool:
    """A machine whose Node was deleted while it was held, and that is back: held again at once."""
    return sight.machine(write.response) in world.left_held


def _unsaid(node: sight.Json) -> set[str]:
    """Faults that no condition of ours can state: a silent agent, a silent kubelet."""
    return {"monitor-silent"} | (set() if sight.ready(node) else {"host-unreachable"})


def uid(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Every eviction names the pod that it means by UID."""
    for write, world in replay(writes):
        if not (engine(write) and eviction(write)):
            continue
        options = write.request.get("deleteOptions") or {}
        given = (options.get("preconditions") or {}).get("uid")
        pod = world.pods.get((write.namespace, write.name), {})
        known = sight.metadata(pod).get("uid")
        if not given or (write.done and known and given != known):
            yield Violation("uid", write.at, f"{write.what} for UID {given}, the pod has {known}")


def left_alone(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No DaemonSet's pod, mirror pod or finished pod is evicted, and no pod is deleted instead.

    Only where a person has said yes to what was asked about its node may a pod be deleted.
    """
    agreed: set[str] = set()
    for write, world in replay(writes):
        if write.resource == "events" and write.done and sight.person(write.user):
            agreed.add(sight.agreed(write.response))
        if not (engine(write) and write.resource == "pods"):
            continue
        pod = world.pods.get((write.namespace, write.name), {})
        why = sight.unevictable(pod)
        if eviction(write) and why:
            yield Violation("left-alone", write.at, f"{write.what}: {why}")
        whole = write.verb == "deletecollection"
        forced = write.verb == "delete" and pod and sight.step_pod(pod) is None
        if whole or (forced and node_of(write, world) not in agreed):
            yield Violation("left-alone", write.at, f"{write.what} deleted, not evicted")
