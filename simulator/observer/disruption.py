"""Which nodes are disrupted at a moment, and in which scopes."""

from collections.abc import Mapping

from simulator.observer import sight
from simulator.observer.transcript import Write
from simulator.observer.world import World, disrupts, node_of

CLUSTER = "cluster"


class Disruptions:
    """A node is disrupted from our first eviction, reset or reboot until our hold is off.

    A node that is handed off keeps its hold and stays disrupted: nobody can use it.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        """`labels` maps each scope but the cluster to a label of nodes."""
        self._labels = labels
        self._nodes: set[str] = set()

    def take(self, write: Write, world: World) -> dict[tuple[str, str], set[str]]:
        """Nodes disrupted after a write, by scope and value; empty where it disrupted none more."""
        node = node_of(write, world)
        if disrupts(write):
            if node in self._nodes:
                return {}
            self._nodes.add(node)
            return self._scopes(world)
        free = write.verb == "delete" or sight.hold(write.response) is None
        if write.done and write.resource == "nodes" and free:
            self._nodes.discard(node)
        return {}

    def _scopes(self, world: World) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {(CLUSTER, ""): set(self._nodes)}
        for node in self._nodes:
            labels = sight.labels(world.nodes.get(node, {}))
            for scope, label in self._labels.items():
                if label in labels:
                    found.setdefault((scope, labels[label]), set()).add(node)
        return found


def most(writes: list[Write], labels: Mapping[str, str]) -> dict[str, int]:
    """The most nodes that were disrupted at once, by scope."""
    disruptions, world = Disruptions(labels), World()
    found = {CLUSTER: 0, **dict.fromkeys(labels, 0)}
    for write in writes:
        for (scope, _), nodes in disruptions.take(write, world).items():
            found[scope] = max(found[scope], len(nodes))
        world.take(write)
    return found
