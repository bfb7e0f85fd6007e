"""What is known of a node that sick nodes may have in common. Pure."""

from collections.abc import Callable, Collection, Mapping

from fleet.fault import Fault
from fleet.node import NodeState
from policies.storm import Traits, common_cause

LABELS: Mapping[str, tuple[str, ...]] = {
    "driver": (
        "nvidia.com/cuda.driver-version.full",
        "nvidia.com/cuda.driver.full",
        "nvidia.com/cuda.driver.major",
    ),
    "instance type": ("node.kubernetes.io/instance-type",),
    "image": ("eks.amazonaws.com/nodegroup-image", "kubernetes.azure.com/node-image-version"),
}
"""By trait, the labels that may say it; the first that is there counts."""


def traits_of(
    node: NodeState, fault: Fault | None, scopes: Mapping[str, str], agent: str = ""
) -> Traits:
    """Fault and code of a sick node, versions and place of any; `agent` is which gpumend its is."""
    labels = {
        name: next((node.labels[each] for each in keys if node.labels.get(each)), "")
        for name, keys in LABELS.items()
    }
    said = {"fault": fault.name.value, "code": fault.code} if fault else {}
    return {**said, **labels, "agent": agent, "rack": scopes.get("rack", "")}


def cause_among(
    everyone: Collection[str], sick: Collection[str], traits: Callable[[str], Traits]
) -> str:
    """What the sick of a scope have in common, in words."""
    return common_cause(
        [traits(each) for each in everyone if each in sick],
        [traits(each) for each in everyone if each not in sick],
    )
