"""What a run must show besides the end of each trouble: read from the audit, said in words."""

from collections.abc import Iterator, Sequence

from simulator.demo.scenario import Claim
from simulator.observer import sight
from simulator.observer.disruption import Disruptions
from simulator.observer.promise import Promises
from simulator.observer.transcript import NOTICES, Write
from simulator.observer.world import World, replay


def queued(rack: str) -> Claim:
    """While a rack's budget is used up, another sick node of it waits, held and not disrupted."""

    def claim(writes: Sequence[Write], promises: Promises) -> list[str]:
        limit = promises.budget.get("rack", 0)
        disruptions = Disruptions(promises)
        for write, world in replay(list(writes)):
            disruptions.take(write, world)
            full = disruptions.scopes(world).get(("rack", rack), set())
            if len(full) == limit and _held(world, promises.labels["rack"], rack) - full:
                return []
        return [f"nobody was seen to wait for the budget of {rack}"]

    return claim


def _held(world: World, label: str, rack: str) -> set[str]:
    return {
        name
        for name, node in world.nodes.items()
        if sight.labels(node).get(label) == rack and sight.hold(node) is not None
    }


def tripped(pool: str) -> Claim:
    """The breaker of a pool opens, closes again, and people are told of it exactly once."""

    def claim(writes: Sequence[Write], _: Promises) -> list[str]:
        records = [each.response for each in writes if each.resource == "configmaps"]
        phases = [sight.breakers(each).get(f"pool/{pool}", "closed") for each in records]
        told = [each for each in writes if each.resource == NOTICES and _of_storm(each, pool)]
        found = [] if "open" in phases else [f"the breaker of pool {pool} never opened"]
        if "open" in phases and phases[-1] == "open":
            found.append(f"the breaker of pool {pool} did not close again")
        if len(told) != 1:
            found.append(f"people were told {len(told)} times of the storm in pool {pool}")
        return found

    return claim


def _of_storm(write: Write, pool: str) -> bool:
    said = write.request
    return said.get("matter") == "storm" and f"pool/{pool}" in str(said.get("title", ""))


def found_by_check(name: str, fault: str, code: str) -> Claim:
    """A node's agent told of a fault by one of its checks, while its kernel log told of nothing."""

    def claim(writes: Sequence[Write], _: Promises) -> list[str]:
        said = " ".join(_agents_words(writes, name))
        found = [] if f"fault={fault} code={code} " in said else [f"{name}: nobody found {code}"]
        return found + ([f"{name}: its kernel log told of it, too"] if "code=xid:" in said else [])

    return claim


def _agents_words(writes: Sequence[Write], name: str) -> Iterator[str]:
    """What the agents' conditions of a node ever said."""
    for write in writes:
        if write.done and write.resource == "nodes" and write.name == name:
            for kind, each in sight.conditions(write.response).items():
                if kind.startswith(sight.OURS):
                    yield str(each.get("message", "")) + " "


def proven(name: str, joined: bool = True) -> Claim:
    """A node came unproven, passed a proof, and was given to work only then.

    `joined`: it is a new one, for which a pod waits.
    """

    def claim(writes: Sequence[Write], _: Promises) -> list[str]:
        waited = works = False
        for write, world in replay(list(writes)):
            before = sight.unproven(world.nodes.get(name, {}))
            if write.resource == "nodes" and write.name == name and write.done:
                waited = waited or sight.unproven(write.response) is not None
            on = str((write.response.get("spec") or {}).get("nodeName", ""))
            if write.resource == "pods" and write.verb == "create" and on == name:
                works = works or (waited and before is None and sight.workload(write.response))
        found = [] if waited else [f"{name} did not come unproven"]
        if sight.unproven(_last(writes, name)) is not None:
            found.append(f"{name} was not proven")
        return found + ([f"{name} was given no work"] if joined and not works else [])

    return claim


def swept(name: str) -> Claim:
    """A look found a node sick that idled and of which nothing was known: it keeps our taint."""

    def claim(writes: Sequence[Write], _: Promises) -> list[str]:
        said = [
            sight.unproven(each.response)
            for each in writes
            if each.done and each.resource == "nodes" and each.name == name
        ]
        found = [] if "sweep" in said else [f"{name} was not swept"]
        return found if "found" in said else [*found, f"{name}: the sweep found nothing"]

    return claim


def untouched(name: str) -> Claim:
    """What others put on a node is there at the end, though the node was repaired."""

    def claim(writes: Sequence[Write], _: Promises) -> list[str]:
        node = _last(writes, name)
        foreign = [key for key in sight.taints(node) if key.startswith("example.org/")]
        cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        return [] if foreign and cordoned else [f"{name}: the cordon or taint of others is gone"]

    return claim


def _last(writes: Sequence[Write], name: str) -> sight.Json:
    world = World()
    for write in writes:
        world.take(write)
    return world.nodes.get(name, {})
