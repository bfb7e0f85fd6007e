"""Node lifecycle: a kubelet whose Lease is old has an unknown node, and such a node is tainted."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from simulator.client import Api
from simulator.controllers.cluster import Json, Node, condition
from simulator.kubelet.status import rfc3339

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
EFFECT = "NoSchedule"


def stale(lease: Mapping[str, Any], now: datetime) -> bool:
    """Whether a Lease was not renewed for as long as it lasts."""
    spec = lease["spec"]
    age = now - datetime.fromisoformat(spec["renewTime"])
    return age.total_seconds() > float(spec["leaseDurationSeconds"])


def wanted_taints(node: Node) -> list[Json] | None:
    """The taints that a node should have, None if it has them. Those of others stay."""
    ready = condition(node, "Ready")
    key = {"True": "", "False": NOT_READY}.get(ready, UNREACHABLE)
    before = (node.get("spec") or {}).get("taints") or []
    others = [each for each in before if each["key"] not in (NOT_READY, UNREACHABLE)]
    after = [*others, {"key": key, "effect": EFFECT}] if key else others
    if {each["key"] for each in after} == {each["key"] for each in before}:
        return None
    return after


async def give_up(api: Api, node: Node, now: datetime) -> None:
    """Say that nothing is known of this node any more, if it is as it was seen (else 409)."""
    unknown = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": rfc3339(now),
    }
    meta = node["metadata"]
    guard = {"resourceVersion": meta["resourceVersion"]}
    body = {"metadata": guard, "status": {"conditions": [unknown]}}
    await api.patch(f"/api/v1/nodes/{meta['name']}/status", body)


async def taint(api: Api, node: Node, taints: Sequence[Json]) -> None:
    """Replace the taints, if nobody changed the node meanwhile (else 409: the next round)."""
    meta = node["metadata"]
    body = {
        "metadata": {"resourceVersion": meta["resourceVersion"]},
        "spec": {"taints": list(taints) or None},
    }
    await api.patch(f"/api/v1/nodes/{meta['name']}", body, "application/merge-patch+json")


def silent(nodes: Mapping[str, Node], leases: Sequence[Json]) -> list[Node]:
    """Nodes that look alive and whose kubelet is not."""
    now = datetime.now(UTC)
    return [
        nodes[lease["metadata"]["name"]]
        for lease in leases
        if lease["metadata"]["name"] in nodes
        and stale(lease, now)
        and condition(nodes[lease["metadata"]["name"]], "Ready") != "Unknown"
    ]
