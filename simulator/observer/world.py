"""The cluster as it stood at each write, put together from the answers of earlier ones."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from simulator.observer import sight
from simulator.observer.sight import Json
from simulator.observer.transcript import MACHINES, Write


@dataclass(slots=True)
class World:
    """Nodes by name, pods by namespace and name, as last seen.

    `left_held` are machines whose Node was deleted with our hold on it.
    """

    nodes: dict[str, Json] = field(default_factory=dict)
    pods: dict[tuple[str, str], Json] = field(default_factory=dict)
    left_held: set[str] = field(default_factory=set)

    def take(self, write: Write) -> None:
        """Learn what a write's answer says."""
        if not write.done:
            return
        if write.resource == "nodes":
            self._take_node(write)
        elif write.resource == "pods":
            self._take_pod(write)

    def _take_node(self, write: Write) -> None:
        if write.verb == "delete":
            before = self.nodes.pop(write.name, {})
            if sight.hold(before) is not None:
                self.left_held.add(sight.machine(before))
        elif write.response.get("kind", "Node") == "Node":
            self.nodes[write.name] = write.response

    def _take_pod(self, write: Write) -> None:
        key = (write.namespace, write.name)
        if write.subresource == "eviction":
            if key in self.pods:
                self.pods[key] = _ending(self.pods[key])
        elif write.verb == "delete":
            self._delete_pod(key, write)
        elif write.response.get("kind", "Pod") == "Pod" and "spec" in write.response:
            self.pods[key] = write.response

    def _delete_pod(self, key: tuple[str, str], write: Write) -> None:
        if write.request.get("gracePeriodSeconds") == 0:
            self.pods.pop(key, None)
        elif key in self.pods:
            self.pods[key] = _ending(self.pods[key])

    def pods_on(self, node: str) -> Iterator[Json]:
        """Pods that are bound to a node and still exist."""
        for pod in self.pods.values():
            if (pod.get("spec") or {}).get("nodeName") == node:
                yield pod


def _ending(pod: Json) -> dict[str, Any]:
    meta = {**sight.metadata(pod), "deletionTimestamp": "set"}
    return {**pod, "metadata": meta}


def node_of(write: Write, world: World) -> str:
    """The node that a write is about; empty where it is about none."""
    if write.resource in ("nodes", MACHINES):
        return write.name
    if write.resource == "pods":
        pod = world.pods.get((write.namespace, write.name), write.request)
        return str((pod.get("spec") or {}).get("nodeName", ""))
    return ""


def engine(write: Write) -> bool:
    """Whether the engine did it."""
    return write.user in sight.ENGINE


def eviction(write: Write) -> bool:
    """Whether it is an eviction."""
    return write.resource == "pods" and write.subresource == "eviction"


def repair(write: Write) -> sight.StepPod | None:
    """The reset, reboot or replacement that a write set going, None for everything else.

    A provider acts on the engine's orders alone, so what it did counts as the engine's; the name of
    its operation begins with that of the step.
    """
    if write.resource == MACHINES and write.verb in sight.PROVIDED:
        operation = str(write.request["operation"])
        return sight.StepPod("", operation, sight.PROVIDED[write.verb], write.name)
    if not (write.done and write.resource == "pods" and write.verb == "create"):
        return None
    if write.subresource:
        return None
    pod = sight.step_pod(write.response)
    return pod if pod and pod.step in sight.REPAIRS else None


def disrupts(write: Write) -> bool:
    """Whether the engine took something from the people who use the node."""
    if repair(write) is not None:
        return write.resource == MACHINES or engine(write)
    return engine(write) and write.done and eviction(write)


def replay(writes: list[Write]) -> Iterator[tuple[Write, World]]:
    """Each write with the world as it was before it."""
    world = World()
    for write in writes:
        yield write, world
        world.take(write)
