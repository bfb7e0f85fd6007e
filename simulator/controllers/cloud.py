"""The cloud's own controllers: labels that say where a machine stands, and Nodes without a machine.

Pure: what is to be written follows from the nodes that are seen and from how the machines stand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.controllers.cluster import Json, Node
from simulator.hardware.power import Power, Switch


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine as the cloud knows it; `base` is where its things lie.

    `labels` are put on its Node, since a kubelet may not say them itself. A `forgetful` cloud
    deletes the Node of a machine that is merely off, as some do.
    """

    provider_id: str
    base: str
    labels: Mapping[str, str] = field(default_factory=dict)
    forgetful: bool = False


def stands(instance: Instance) -> Power:
    """How its machine stands."""
    return Switch(Path(instance.base)).state


def missing_labels(
    nodes: Iterable[Node], instances: Mapping[str, Instance]
) -> Iterator[tuple[Node, Mapping[str, str]]]:
    """Nodes that lack labels of their machine, with those that they lack."""
    for node in nodes:
        instance = instances.get(provider_id(node))
        have = node["metadata"].get("labels") or {}
        lacking = instance and {k: v for k, v in instance.labels.items() if have.get(k) != v}
        if lacking:
            yield node, lacking


def without_machine(
    nodes: Iterable[Node],
    instances: Mapping[str, Instance],
    power: Callable[[Instance], Power] = stands,
) -> Iterator[Node]:
    """Nodes whose machine is gone; of a forgetful cloud also those whose machine is off."""
    for node in nodes:
        instance = instances.get(provider_id(node))
        if instance is None or "deletionTimestamp" in node["metadata"]:
            continue
        state = power(instance)
        if state is Power.GONE or (instance.forgetful and state is not Power.ON):
            yield node


def provider_id(node: Node) -> str:
    """By which the cloud knows the machine of a Node."""
    return str((node.get("spec") or {}).get("providerID", ""))


def orphans(pods: Iterable[Json], nodes: Mapping[str, Node]) -> Iterator[Json]:
    """Pods that are bound to a Node which is not there."""
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and node not in nodes:
            yield pod
