"""Bounds: how much at once, how often, and on whose things."""

from collections.abc import Iterator, Mapping

from simulator.observer import sight
from simulator.observer.disruption import Disruptions
from simulator.observer.promise import Promises, Violation
from simulator.observer.sight import Json
from simulator.observer.transcript import MACHINES, Write
from simulator.observer.world import engine, eviction, replay


def budget(writes: list[Write], promises: Promises) -> Iterator[Violation]:
    """In no scope are more nodes disrupted at once than its budget allows."""
    disruptions = Disruptions(promises)
    for write, world in replay(writes):
        for (scope, value), nodes in disruptions.take(write, world).items():
            limit = promises.budget.get(scope)
            if limit is not None and len(nodes) > limit:
                what = f"{len(nodes)} nodes of {scope} {value} at once: {', '.join(sorted(nodes))}"
                yield Violation("budget", write.at, what)


def taints(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """The engine adds and removes its own hold, and no other taint or cordon changes with it."""
    for write, world in replay(writes):
        if not (write.done and engine(write) and write.resource == "nodes"):
            continue
        before, after = world.nodes.get(write.name), write.response
        if before is None or write.verb == "delete":
            continue
        if _foreign(before) != _foreign(after):
            yield Violation("taints", write.at, f"{write.name}: taints of others changed")
        if _cordoned(before) != _cordoned(after) and "cordon" not in _undo(before, after):
            yield Violation("taints", write.at, f"{write.name}: a cordon changed that is not ours")


def agent(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """An agent writes its own Node's `gpumend.io/*` conditions and its own Lease, nothing else."""
    for write in writes:
        if write.user != sight.AGENT or not write.done:
            continue
        own = "".join(write.extra.get("authentication.kubernetes.io/node-name") or ())
        if write.resource == "leases" and write.name == f"agent-{own}":
            continue
        status = write.resource == "nodes" and write.subresource == "status"
        if status and write.name == own and _only_conditions(write.request):
            continue
        yield Violation("agent", write.at, f"the agent of {own} wrote {write.what}")


def _only_conditions(request: Json) -> bool:
    """Whether a patch of a Node's status holds conditions of ours and no more than guards."""
    meta, status = sight.metadata(request), request.get("status") or {}
    return (
        set(request) <= {"apiVersion", "kind", "metadata", "status"}
        and set(meta) <= {"name", "uid", "resourceVersion"}
        and set(status) <= {"conditions", "$setElementOrder/conditions"}
        and all(str(each["type"]).startswith(sight.OURS) for each in status.get("conditions", ()))
    )


def twice(writes: list[Write], _: Promises) -> Iterator[Violation]:
    """Nothing is done twice: one pod an operation, one eviction a pod, one hold an incident."""
    seen: set[tuple[str, ...]] = set()
    for write, world in replay(writes):
        if not (write.done and (engine(write) or write.resource == MACHINES)):
            continue
        effect = _effect(write, world.pods, world.nodes)
        if effect and effect in seen:
            yield Violation("twice", write.at, f"{' '.join(effect)}, again")
        if effect:
            seen.add(effect)


def _effect(
    write: Write, pods: Mapping[tuple[str, str], Json], nodes: Mapping[str, Json]
) -> tuple[str, ...] | None:
    if write.resource == MACHINES:
        return ("changed", write.verb, str(write.request["operation"]))
    if write.resource == "pods" and eviction(write):
        pod = pods.get((write.namespace, write.name), {})
        return ("evicted", write.name, str(sight.metadata(pod).get("uid")))
    if write.resource == "pods" and write.verb == "create":
        step = sight.step_pod(write.response)
        return ("started", step.step, step.operation) if step else None
    if write.resource == "nodes" and write.verb != "delete":
        return _hold_effect(write, nodes.get(write.name, {}))
    return None


def _hold_effect(write: Write, before: Json) -> tuple[str, ...] | None:
    """A hold that goes on again under one mark is a relapse only after it came off."""
    mark = sight.mark(write.response) or sight.mark(before) or {}
    if sight.hold(before) is None and sight.hold(write.response) is not None:
        return ("held", write.name, str(mark.get("id")), str(mark.get("state")))
    return None


def _foreign(node: Json) -> dict[str, Json]:
    return {key: each for key, each in sight.taints(node).items() if not key.startswith(sight.OURS)}


def _cordoned(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _undo(before: Json, after: Json) -> list[str]:
    return [entry for node in (before, after) for entry in (sight.mark(node) or {}).get("undo", ())]
