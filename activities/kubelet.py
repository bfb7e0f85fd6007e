"""Does a node's kubelet answer? Its Lease and its Ready condition are asked, and must agree.

A pinned Pod, a drain and a graceful end all need a kubelet; a silent one needs other means.
"""

from datetime import datetime, timedelta

from fleet.errors import NotFound
from fleet.instant import parse_instant
from fleet.node import NodeState
from fleet.ports import Json, Kubernetes

KUBELET_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

DEFAULT_DURATION = 40
"""Seconds; what a kubelet writes where it is not told otherwise. It renews four times as often."""


async def kubelet_silent(kubernetes: Kubernetes, node: NodeState, now: datetime) -> bool:
    """Whether both witnesses say that it does not answer; raises the port's errors.

    A node that is Ready answers, whatever its Lease says. Without a Lease its Ready decides.
    """
    if node.ready == "True":
        return False
    try:
        lease = await kubernetes.get(f"{KUBELET_LEASES}/{node.identity.name}")
    except NotFound:
        return node.ready == "Unknown"
    return stale(lease, now)


def stale(lease: Json, now: datetime) -> bool:
    """Whether it was not renewed for as long as it lasts; one that says nothing is stale."""
    spec = lease.get("spec") or {}
    try:
        renewed = parse_instant(spec["renewTime"])
    except (KeyError, TypeError, ValueError):
        return True
    seconds = spec.get("leaseDurationSeconds") or DEFAULT_DURATION
    return now - renewed > timedelta(seconds=seconds)
