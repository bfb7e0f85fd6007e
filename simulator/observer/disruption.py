"""Which nodes are disrupted at a moment, and in which scopes."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from simulator.observer import sight
from simulator.observer.promise import Promises
from simulator.observer.transcript import Write
from simulator.observer.world import World, disrupts, engine, node_of

CLUSTER, JOB = "cluster", "job"
Scopes = dict[tuple[str, str], set[str]]


@dataclass(frozen=True, slots=True)
class _Disrupted:
    """A node, the machine that it was then, the jobs that lost something by it, the incident."""

    node: str
    machine: str
    jobs: frozenset[str]
    incident: str
    handed_off: bool = False


class Disruptions:
    """A node is disrupted from our first eviction, reset, reboot or replacement until our hold is
    off. One that is handed off keeps its hold, and counts on in the scopes that the promises name;
    one whose Node is deleted counts again when the same machine is back, still held.
    """

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._nodes: dict[str, _Disrupted] = {}
        self._away: dict[str, _Disrupted] = {}

    def take(self, write: Write, world: World) -> Scopes:
        """Nodes disrupted after a write, by scope and value; empty where it disrupted none more."""
        node = node_of(write, world)
        if disrupts(write) and node:
            return self._disrupted(node, world)
        if write.done and write.resource == "nodes":
            self._note_node(write)
        elif write.done and write.resource == "events" and engine(write):
            self._note_hand_off(sight.handed_off(write.response))
        return {}

    def scopes(self, world: World) -> Scopes:
        """Nodes that are disrupted now, by scope and value."""
        found: Scopes = {}
        for each in self._nodes.values():
            for scope in self._scopes_of(each, world):
                if not each.handed_off or scope[0] in self._promises.hand_offs:
                    found.setdefault(scope, set()).add(each.node)
        return found

    def _disrupted(self, node: str, world: World) -> Scopes:
        known = self._nodes.get(node)
        if known and not known.handed_off:
            return {}
        before = world.nodes.get(node, {})
        mark = sight.mark(before) or {}
        jobs = known.jobs if known else self._jobs(node, world)
        self._nodes[node] = _Disrupted(node, sight.machine(before), jobs, str(mark.get("id", "")))
        return self.scopes(world)

    def _jobs(self, node: str, world: World) -> frozenset[str]:
        label = self._promises.job
        names = (sight.labels(pod).get(label) for pod in world.pods_on(node)) if label else ()
        return frozenset(each for each in names if each)

    def _note_node(self, write: Write) -> None:
        known = self._nodes.get(write.name)
        if write.verb == "delete":
            if known:
                self._away[known.machine] = self._nodes.pop(write.name)
            return
        held = sight.hold(write.response) is not None
        if known and not held:
            del self._nodes[write.name]
        away = self._away.get(sight.machine(write.response))
        if away and held:
            self._nodes[write.name] = self._away.pop(away.machine)

    def _note_hand_off(self, incident: str) -> None:
        for node, each in list(self._nodes.items()):
            if incident and each.incident == incident:
                self._nodes[node] = _Disrupted(
                    each.node, each.machine, each.jobs, each.incident, handed_off=True
                )

    def _scopes_of(self, each: _Disrupted, world: World) -> AbstractSet[tuple[str, str]]:
        labels = sight.labels(world.nodes.get(each.node, {}))
        named = {
            (scope, labels[label])
            for scope, label in self._promises.labels.items()
            if label in labels
        }
        return {(CLUSTER, ""), *named, *((JOB, job) for job in each.jobs)}


def most(writes: list[Write], promises: Promises) -> dict[str, int]:
    """The most nodes that were disrupted at once, by scope."""
    disruptions, world = Disruptions(promises), World()
    job = (JOB,) if promises.job else ()
    found = {CLUSTER: 0, **dict.fromkeys((*promises.labels, *job), 0)}
    for write in writes:
        for (scope, _), nodes in disruptions.take(write, world).items():
            found[scope] = max(found[scope], len(nodes))
        world.take(write)
    return found
