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
    repair,
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


def unknown(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Nothing is disrupted unless, since the hold, some condition stated a fault positively."""
    accused: dict[str, bool] = {}
    for write, world in replay(writes):
        node = node_of(write, world)
        before = world.nodes.get(node, {})
        if disrupts(write) and not (accused.get(node) or _accusations(before)):
            yield Violation(
                "unknown", write.at, f"{write.what} on {node}, where no fault was known"
            )
        if write.done and write.resource == "nodes":
            held_now = sight.hold(write.response) is not None
            known = bool(_accusations(write.response) | _accusations(before))
            accused[node] = held_now and (accused.get(node, False) or known)


def _accusations(node: sight.Json) -> set[str]:
    return sight.faults(node) - NO_ACCUSATION


def evidence(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """A node is held only for a fault that its conditions state, so never for an application's."""
    for write, world in replay(writes):
        if not (write.done and engine(write) and write.resource == "nodes"):
            continue
        before = world.nodes.get(write.name, {})
        name = sight.hold(write.response)
        if name is None or sight.hold(before) is not None:
            continue
        if name not in sight.faults(before) | _unsaid(before):
            what = f"{write.name} held for {name or 'nothing'}, which no condition stated"
            yield Violation("evidence", write.at, what)


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
    """No DaemonSet's pod, mirror pod or finished pod is evicted, and no pod is deleted instead."""
    for write, world in replay(writes):
        if not (engine(write) and write.resource == "pods"):
            continue
        pod = world.pods.get((write.namespace, write.name), {})
        why = sight.unevictable(pod)
        if eviction(write) and why:
            yield Violation("left-alone", write.at, f"{write.what}: {why}")
        whole = write.verb == "deletecollection"
        if whole or (write.verb == "delete" and pod and sight.step_pod(pod) is None):
            yield Violation("left-alone", write.at, f"{write.what} deleted, not evicted")


def grace(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No workload's pod is forced: each is given the time to end that it asked for."""
    for write, world in replay(writes):
        if not (engine(write) and write.resource == "pods"):
            continue
        options = write.request.get("deleteOptions") or write.request
        pod = world.pods.get((write.namespace, write.name), {})
        if options.get("gracePeriodSeconds") == 0 and sight.step_pod(pod) is None:
            yield Violation("grace", write.at, f"{write.what} was given no time to end")


def drained(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """No reset and no reboot begins while a workload's pod is on the node."""
    for write, world in replay(writes):
        step = repair(write)
        if step is None:
            continue
        left = _workloads(world, step.node)
        if left:
            what = f"{step.step} of {step.node} while {', '.join(left)} was there"
            yield Violation("drained", write.at, what)


def _workloads(world: World, node: str) -> list[str]:
    return [
        str(sight.metadata(pod).get("name")) for pod in world.pods_on(node) if sight.workload(pod)
    ]
