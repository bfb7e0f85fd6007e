"""Owners of pods: so many of a workload somewhere, or one on every node. Pure: what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.controllers.cluster import GPU, Cluster, Json, Node, node_of, schedulable


@dataclass(frozen=True, slots=True)
class Workload:
    """`replicas` pods with `gpus` GPUs each, kept running as a ReplicaSet does.

    `labels` are the pods', `on` those that a node must have.
    """

    name: str
    uid: str
    replicas: int
    gpus: int
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    on: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Daemon:
    """One pod on every node, whatever taints it has. `spec` is the pod's, `{node}` its name.

    `more` are further words of the command on some nodes.
    """

    name: str
    uid: str
    namespace: str
    spec: Mapping[str, Any]
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)


def next_replica(workload: Workload, cluster: Cluster) -> Json | None:
    """The next pod to create, None if none is missing or no node has room.

    The node with most free GPUs gets it, the first by name among equals: a stand-in scheduler.
    """
    if len(cluster.owned_by(workload.uid)) >= workload.replicas:
        return None
    fits = [
        node
        for name, node in sorted(cluster.nodes.items())
        if schedulable(node)
        and workload.on.items() <= (node["metadata"].get("labels") or {}).items()
        and cluster.free_gpus(node) >= workload.gpus
    ]
    if not fits:
        return None
    node = max(fits, key=cluster.free_gpus)
    return {
        "metadata": {
            "generateName": f"{workload.name}-",
            "namespace": workload.namespace,
            "labels": {"app": workload.name, **workload.labels},
            "ownerReferences": [_owner("apps/v1", "ReplicaSet", workload.name, workload.uid)],
        },
        "spec": {
            "nodeName": node["metadata"]["name"],
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/workload:1",
                    "resources": {"limits": {GPU: str(workload.gpus)}},
                }
            ],
        },
    }


def missing_daemons(daemon: Daemon, cluster: Cluster) -> list[Json]:
    """Pods to create: one for each node without one. A pod on its way out is waited for."""
    there = {
        node_of(pod)
        for pod in cluster.pods.values()
        if any(each["uid"] == daemon.uid for each in pod["metadata"].get("ownerReferences") or ())
    }
    return [
        _daemon_pod(daemon, cluster.nodes[name]) for name in sorted(cluster.nodes.keys() - there)
    ]


def _daemon_pod(daemon: Daemon, node: Node) -> Json:
    name = node["metadata"]["name"]
    spec = _filled(daemon.spec, name)
    for container in spec["containers"]:
        container["command"] = [*container["command"], *daemon.more.get(name, ())]
    return {
        "metadata": {
            "name": f"{daemon.name}-{name}",
            "namespace": daemon.namespace,
            "labels": {"app": daemon.name},
            "ownerReferences": [_owner("apps/v1", "DaemonSet", daemon.name, daemon.uid)],
        },
        "spec": {
            **spec,
            "nodeName": name,
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _filled(value: Any, node: str) -> Any:
    if isinstance(value, str):
        return value.replace("{node}", node)
    if isinstance(value, Mapping):
        return {key: _filled(each, node) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, node) for each in value]
    return value


def _owner(version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
