"""The Eviction subresource: a delete that asks the PodDisruptionBudget first.

The order of the questions is that of the real handler (pkg/registry/core/pod/storage/eviction.go).
"""

from dataclasses import replace
from typing import Any

from simulator.apiserver.call import Call
from simulator.apiserver.defaults import rfc3339
from simulator.apiserver.deletion import Deletion, check_preconditions
from simulator.apiserver.disruption import with_allowed_condition
from simulator.apiserver.history import Stored
from simulator.apiserver.registry import Clock, Registry
from simulator.apiserver.selectors import label_selector
from simulator.apiserver.status import ApiError, bad_request, forbidden
from simulator.apiserver.store import Store

RETRY_AFTER_S = 10
MAX_DISRUPTED_PODS = 2000
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_BYPASS = ("Succeeded", "Failed", "Pending")


class Eviction:
    """Answers evictions."""

    def __init__(self, store: Store, now: Clock, registry: Registry, deletion: Deletion) -> None:
        self._store = store
        self._now = now
        self._registry = registry
        self._deletion = deletion

    def evict(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """Evict the pod of the request; returns a Status of success."""
        if (body.get("metadata") or {}).get("name", call.name) != call.name:
            raise bad_request("name in URL does not match name in Eviction object")
        pod = self._registry.existing(replace(call, subresource=""))
        options = dict(body.get("deleteOptions") or {})
        dry_run = call.dry_run or "All" in (options.get("dryRun") or [])
        if not may_bypass(pod.object):
            self._ask_budget(pod, dry_run)
        self._delete(call, pod, options, dry_run)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }

    def _delete(self, call: Call, pod: Stored, options: dict[str, Any], dry_run: bool) -> None:
        check_preconditions(pod, options)
        if not dry_run:
            marked = self._store.put(pod.kind, _with_condition(pod.object, rfc3339(self._now())))
            if (options.get("preconditions") or {}).get("resourceVersion"):
                version = {"resourceVersion": marked.meta["resourceVersion"]}
                options["preconditions"] = {**options["preconditions"], **version}
        query = {"dryRun": "All"} if dry_run else {}
        self._deletion.delete(replace(call, verb="delete", subresource="", query=query), options)

    def _ask_budget(self, pod: Stored, dry_run: bool) -> None:
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            raise ApiError(500, "", TWO_BUDGETS)
        if not budgets:
            return
        budget = budgets[0]
        if not _ready(pod.object) and _lets_unready_go(budget.object):
            return
        allowed = check_budget(budget)
        if not dry_run:
            self._store.put(budget.kind, self._decremented(budget.object, pod, allowed))

    def _budgets_of(self, pod: Stored) -> list[Stored]:
        kind = self._store.kinds.named("poddisruptionbudgets", "policy")
        labels = pod.meta.get("labels") or {}
        return [
            budget
            for (namespace, _), budget in self._store.objects(kind).items()
            if namespace == pod.meta["namespace"]
            and label_selector(budget.object["spec"].get("selector"))(labels)
        ]

    def _decremented(self, budget: dict[str, Any], pod: Stored, allowed: int) -> dict[str, Any]:
        status = budget["status"]
        disrupted = {
            **(status.get("disruptedPods") or {}),
            pod.meta["name"]: rfc3339(self._now()),
        }
        changes: dict[str, Any] = {"disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        if allowed == 1:
            changes["conditions"] = with_allowed_condition(budget, 0, self._now())
        return {**budget, "status": {**status, **changes}}


def may_bypass(pod: dict[str, Any]) -> bool:
    """Whether no budget protects the pod: it is finished, not running yet, or on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in _BYPASS or "deletionTimestamp" in pod["metadata"]


def check_budget(budget: Stored) -> int:
    """How many disruptions the budget allows; 429 or 403 if none."""
    name, status = budget.meta["name"], budget.object.get("status") or {}
    if status.get("observedGeneration", 0) < budget.meta.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, RETRY_AFTER_S)
    allowed = int(status.get("disruptionsAllowed", 0))
    if allowed < 0:
        raise _broken(budget, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        raise _broken(
            budget,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _too_many(_why_not(name, status), 0)
    return allowed


def _why_not(name: str, status: dict[str, Any]) -> str:
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    found = conditions.get("DisruptionAllowed", {})
    told = found.get("message") if found.get("status") == "False" else None
    text = f"The disruption budget {name} does not allow evicting pods currently"
    if told and found.get("reason") == "SyncFailed":
        return f"{text} because it failed sync: {told}"
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= wanted:
        return (
            f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        )
    return f"{text} ({found.get('reason')}): {told}" if told else text


def _too_many(why: str, retry_after_s: int) -> ApiError:
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return ApiError(429, "TooManyRequests", VIOLATION, {"causes": causes}, retry_after_s)


def _broken(budget: Stored, why: str) -> ApiError:
    text = (
        f"The disruption budget {budget.meta['name']} does not allow evicting pods currently: {why}"
    )
    cause = {"reason": "DisruptionBudget", "message": text}
    kind = replace(budget.kind, plural="poddisruptionbudget")
    return forbidden(kind, budget.meta["name"], why, [cause])


def _lets_unready_go(budget: dict[str, Any]) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= wanted > 0)


def _ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _with_condition(pod: dict[str, Any], now: str) -> dict[str, Any]:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or [] if c["type"] != "DisruptionTarget"]
    return {**pod, "status": {**status, "conditions": [*others, condition]}}
