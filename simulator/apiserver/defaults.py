"""What the server fills in when an object is created: metadata, and a pod's many defaults."""

import secrets
import uuid
from datetime import UTC, datetime
from typing import Any

from simulator.apiserver.kinds import Kind

GENERATED_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_LENGTH = 5
_SYSTEM_META = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "resourceVersion",
    "managedFields",
)
_CONTAINER = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_POD_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "priority": 0,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATION_S = 300
CRITICAL = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def rfc3339(moment: datetime) -> str:
    """As in creationTimestamp: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def generated_name(prefix: str) -> str:
    """A name for `generateName`."""
    letters = (secrets.choice(GENERATED_LETTERS) for _ in range(GENERATED_LENGTH))
    return prefix + "".join(letters)


def created(kind: Kind, body: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The object as it is first stored; `body` has its name and namespace."""
    kept = {k: v for k, v in body["metadata"].items() if k not in _SYSTEM_META}
    meta = {**kept, "uid": str(uuid.uuid4()), "creationTimestamp": rfc3339(now)}
    if kind.generation:
        meta["generation"] = 1
    result = {**body, "metadata": meta}
    if kind.status and kind.plural != "nodes":  # a node may be born with a status
        result.pop("status", None)
    filling = {"pods": _pod, "namespaces": _namespace, "secrets": _secret, "nodes": _node}
    filling["poddisruptionbudgets"] = _budget
    fill = filling.get(kind.plural) if not kind.custom else None
    return fill(result) if fill else result


def established(definition: dict[str, Any], now: datetime) -> dict[str, Any]:
    """A CustomResourceDefinition whose kind is served, as it says of itself."""
    told = {"status": "True", "lastTransitionTime": rfc3339(now), "message": ""}
    conditions = [
        {"type": "NamesAccepted", "reason": "NoConflicts", **told},
        {"type": "Established", "reason": "InitialNamesAccepted", **told},
    ]
    names = definition["spec"]["names"]
    return {**definition, "status": {"conditions": conditions, "acceptedNames": names}}


def without_false(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    """A node that is not unschedulable says nothing about it."""
    spec = obj.get("spec") or {}
    if kind.plural != "nodes" or spec.get("unschedulable") is not False:
        return obj
    return {**obj, "spec": {k: v for k, v in spec.items() if k != "unschedulable"}}


def _node(node: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {}, "status": {}, **node}


def _namespace(namespace: dict[str, Any]) -> dict[str, Any]:
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    return {
        **namespace,
        "metadata": {**meta, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _budget(budget: dict[str, Any]) -> dict[str, Any]:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return {**budget, "status": dict.fromkeys(counts, 0)}


def _secret(secret: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Opaque", **secret}


def _pod(pod: dict[str, Any]) -> dict[str, Any]:
    spec = {**_POD_SPEC, **(pod.get("spec") or {})}
    spec["containers"] = [_container(container) for container in spec.get("containers") or []]
    spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
    if (name := spec.get("priorityClassName")) in CRITICAL:
        spec["priority"] = CRITICAL[name]
    if account := spec.get("serviceAccountName"):
        spec["serviceAccount"] = account
    return {**pod, "spec": spec, "status": {"phase": "Pending", "qosClass": _quality(spec)}}


def _container(container: dict[str, Any]) -> dict[str, Any]:
    _, _, tag = container.get("image", "").rpartition("/")[2].partition(":")
    pull = (
        "Always"
        if tag in ("", "latest") and "@" not in container.get("image", "")
        else "IfNotPresent"
    )
    return {**_CONTAINER, "imagePullPolicy": pull, **container}


def _tolerations(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every pod tolerates an absent node for a while, unless it says something about that."""
    missing = [key for key in _TOLERATED if not any(_covers(t, key) for t in given)]
    how = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_S}
    return given + [{"key": key, **how} for key in missing]


def _covers(toleration: dict[str, Any], key: str) -> bool:
    same_key = toleration.get("key", "") in ("", key)
    return same_key and toleration.get("effect", "") in ("", "NoExecute")


def _quality(spec: dict[str, Any]) -> str:
    resources = [container.get("resources") or {} for container in spec["containers"]]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    guaranteed = all(
        r.get("limits", {}).keys() >= {"cpu", "memory"}
        and r.get("requests", r["limits"]) == r["limits"]
        for r in resources
    )
    return "Guaranteed" if guaranteed else "Burstable"
