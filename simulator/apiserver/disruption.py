"""A disruption controller of our own: keeps the status of every PodDisruptionBudget.

In a real cluster the controller-manager does this; the API server alone does not.
"""

import asyncio
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from simulator.apiserver.defaults import rfc3339
from simulator.apiserver.history import Stored
from simulator.apiserver.selectors import label_selector
from simulator.apiserver.store import Store

CONFIRMED_WITHIN = timedelta(minutes=2)
_OWNERS = {
    "ReplicaSet": ("replicasets", "apps"),
    "StatefulSet": ("statefulsets", "apps"),
    "Job": ("jobs", "batch"),
}


class Disruption:
    """Writes PDB statuses whenever pods or budgets change."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._pods = store.kinds.named("pods")
        self._budgets = store.kinds.named("poddisruptionbudgets", "policy")

    async def run(self) -> None:
        """Follow the changes until cancelled."""
        while True:
            waits = [
                asyncio.create_task(self._store.history(kind).changed.wait())
                for kind in (self._pods, self._budgets)
            ]
            self.sync()
            try:
                await asyncio.wait(
                    waits,
                    timeout=CONFIRMED_WITHIN.total_seconds(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                for task in waits:
                    task.cancel()

    def sync(self) -> None:
        """Bring every status up to date."""
        for budget in list(self._store.objects(self._budgets).values()):
            status = self._status(budget)
            if status != budget.object.get("status"):
                self._store.put(budget.kind, {**budget.object, "status": status})

    def _status(self, budget: Stored) -> dict[str, Any]:
        pods = self._pods_of(budget)
        expected = self._expected(budget.object["spec"], pods)
        desired = desired_healthy(budget.object["spec"], expected)
        disrupted = self._unconfirmed(budget, pods)
        healthy = sum(_healthy(p) for p in pods if p["metadata"]["name"] not in disrupted)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: dict[str, Any] = {
            "observedGeneration": budget.meta["generation"],
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": with_allowed_condition(budget.object, allowed, self._now()),
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _pods_of(self, budget: Stored) -> list[dict[str, Any]]:
        test = label_selector(budget.object["spec"].get("selector"))
        return [
            pod.object
            for (namespace, _), pod in self._store.objects(self._pods).items()
            if namespace == budget.meta["namespace"]
            and test(pod.meta.get("labels") or {})
            and (pod.object.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def _expected(self, spec: dict[str, Any], pods: list[dict[str, Any]]) -> int:
        if isinstance(spec.get("minAvailable"), int):
            return len(pods)
        owners = {}
        alone = 0
        for pod in pods:
            scale = self._scale(pod)
            if scale is None:
                alone += 1
            else:
                owners[scale[0]] = scale[1]
        return alone + sum(owners.values())

    def _scale(self, pod: dict[str, Any]) -> tuple[str, int] | None:
        for owner in pod["metadata"].get("ownerReferences") or []:
            if owner.get("controller") and owner["kind"] in _OWNERS:
                kind = self._store.kinds.named(*_OWNERS[owner["kind"]])
                found = self._store.get(kind, pod["metadata"]["namespace"], owner["name"])
                if found and found.meta["uid"] == owner["uid"]:
                    spec = found.object["spec"]
                    return owner["uid"], int(spec.get("replicas", spec.get("parallelism", 1)))
        return None

    def _unconfirmed(self, budget: Stored, pods: list[dict[str, Any]]) -> dict[str, str]:
        there = {p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]}
        known = (budget.object.get("status") or {}).get("disruptedPods") or {}
        oldest = self._now() - CONFIRMED_WITHIN
        return {
            name: since
            for name, since in known.items()
            if name in there and datetime.fromisoformat(since) > oldest
        }


def with_allowed_condition(
    budget: dict[str, Any], allowed: int, now: datetime
) -> list[dict[str, Any]]:
    """The conditions of a budget, with DisruptionAllowed telling `allowed`."""
    conditions = (budget.get("status") or {}).get("conditions") or []
    before: dict[str, Any] = next((c for c in conditions if c["type"] == "DisruptionAllowed"), {})
    value = "True" if allowed > 0 else "False"
    since = before.get("lastTransitionTime") if before.get("status") == value else None
    told = {
        "type": "DisruptionAllowed",
        "status": value,
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": since or rfc3339(now),
        "reason": "SufficientPods" if allowed > 0 else "InsufficientPods",
        "message": "",
    }
    return [c for c in conditions if c["type"] != "DisruptionAllowed"] + [told]


def desired_healthy(spec: dict[str, Any], expected: int) -> int:
    """How many pods must stay healthy; percentages round up."""
    if "maxUnavailable" in spec:
        return max(0, expected - _share(spec["maxUnavailable"], expected))
    return _share(spec.get("minAvailable", 1), expected)


def _share(value: int | str, of: int) -> int:
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%")) * of / 100)


def _healthy(pod: dict[str, Any]) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
