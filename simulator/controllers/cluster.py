"""What the controllers see of the cluster, kept by list and watch. Reading it is pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Pod = Mapping[str, Any]
Node = Mapping[str, Any]

GPU = "nvidia.com/gpu"


@dataclass(slots=True)
class Cluster:
    """Nodes by name; pods and budgets by UID."""

    nodes: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    budgets: dict[str, Json] = field(default_factory=dict)

    def pods_on(self, node: str) -> list[Json]:
        """Pods that are bound to a node and not finished."""
        return [each for each in self.pods.values() if node_of(each) == node and not finished(each)]

    def owned_by(self, uid: str) -> list[Json]:
        """Pods that an owner counts as its own: not finished and not on their way out."""
        return [
            each
            for each in self.pods.values()
            if any(owner["uid"] == uid for owner in each["metadata"].get("ownerReferences") or ())
            and not finished(each)
            and "deletionTimestamp" not in each["metadata"]
        ]

    def free_gpus(self, node: Node) -> int:
        """GPUs of a node that no pod there asks for; terminating pods still have theirs."""
        allocatable = int((node.get("status") or {}).get("allocatable", {}).get(GPU, 0))
        name = node["metadata"]["name"]
        return allocatable - sum(gpus_of(pod) for pod in self.pods_on(name))


def node_of(pod: Pod) -> str:
    """The node that a pod is bound to, empty where it is not."""
    return str(pod["spec"].get("nodeName", ""))


def finished(pod: Pod) -> bool:
    """Whether a pod will never run again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def gpus_of(pod: Pod) -> int:
    """GPUs that a pod asks for."""
    containers = pod["spec"]["containers"]
    limits = ((each.get("resources") or {}).get("limits") or {} for each in containers)
    return sum(int(each.get(GPU, 0)) for each in limits)


def condition(thing: Mapping[str, Any], kind: str) -> str:
    """The status of a condition of a node or pod, empty where it is absent."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return next((str(each["status"]) for each in conditions if each["type"] == kind), "")


def schedulable(node: Node) -> bool:
    """Whether a pod without tolerations may be bound there."""
    spec = node.get("spec") or {}
    refused = any(
        taint["effect"] in ("NoSchedule", "NoExecute") for taint in spec.get("taints") or ()
    )
    return condition(node, "Ready") == "True" and not spec.get("unschedulable") and not refused


def matching(pods: Iterable[Json], labels: Mapping[str, str]) -> list[Json]:
    """Pods that carry all these labels."""
    return [pod for pod in pods if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
