"""The Pods that are bound to a node: how they are listed, and whether they are over.

What a Pod is to a drain is `pods.py`.
"""

from collections.abc import Mapping
from typing import Any

from activities.waiting import list_all
from fleet.ports import Json, Kubernetes

PODS = "/api/v1/pods"
"""Of every namespace."""


def bound_to(node: str) -> Mapping[str, str]:
    """The query for the Pods of one node."""
    return {"fieldSelector": f"spec.nodeName={node}"}


async def pods_on(kubernetes: Kubernetes, node: str) -> tuple[Json, ...]:
    """All of them; raises what `list_all` raises."""
    return (await list_all(kubernetes, PODS, bound_to(node))).objects


def phase_of(pod: Mapping[str, Any]) -> str:
    """Its phase; empty where nobody has said one."""
    return str((pod.get("status") or {}).get("phase") or "")


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether it came to its end, well or not."""
    return phase_of(pod) in ("Succeeded", "Failed")
