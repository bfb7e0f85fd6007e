"""The disruption controller: the status of a PodDisruptionBudget, from the pods that it selects."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from simulator.controllers.cluster import Cluster, Json, condition, finished, matching


def budget_status(budget: Json, cluster: Cluster, replicas: Mapping[str, int]) -> dict[str, Any]:
    """The status that the budget should have; its `maxUnavailable` is a number.

    `replicas` are what owners want, by UID: a pod on its way out is not expected twice.
    """
    namespace = budget["metadata"]["namespace"]
    pods = [
        pod
        for pod in matching(cluster.pods.values(), budget["spec"]["selector"]["matchLabels"])
        if pod["metadata"]["namespace"] == namespace and not finished(pod)
    ]
    before = (budget.get("status") or {}).get("disruptedPods") or {}
    disrupted = {name: at for name, at in before.items() if _still_disrupted(name, at, pods)}
    healthy = sum(
        condition(pod, "Ready") == "True"
        and "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"]["name"] not in disrupted
        for pod in pods
    )
    expected = sum(replicas.get(owner, 0) for owner in {_owner(pod) for pod in pods})
    desired = max(0, expected - int(budget["spec"].get("maxUnavailable", 0)))
    allowed = max(0, healthy - desired)
    return {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "disruptedPods": disrupted or None,
    }


def _owner(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(each["uid"]) for each in owners if each.get("controller")), "")


CONFIRM_SECONDS = 120
"""An eviction whose pod is still whole after this did not take place."""


def _still_disrupted(name: str, at: str, pods: list[Json]) -> bool:
    """An eviction that was allowed counts until its pod is seen to go."""
    found = next((pod for pod in pods if pod["metadata"]["name"] == name), None)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(at)
    return age.total_seconds() < CONFIRM_SECONDS


def differs(budget: Json, status: dict[str, Any]) -> bool:
    """Whether a budget has another status than this."""
    before = budget.get("status") or {}
    return any(before.get(key) != value for key, value in status.items())
