"""What an update may not touch: the other half of the object, its identity, a pod's spec."""

from typing import Any

from simulator.apiserver.kinds import Kind
from simulator.apiserver.validation import Cause, cause

_KEPT_META = ("creationTimestamp", "deletionTimestamp", "generation", "namespace", "name")
_POD_CHANGES = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
POD_SPEC_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def kept_apart(
    kind: Kind, subresource: str, after: dict[str, Any], before: dict[str, Any]
) -> dict[str, Any]:
    """`after`, with everything that this way of writing may not change as it was `before`."""
    meta = _meta(after["metadata"], before["metadata"])
    if subresource != "status":
        return _with(after, meta, "status", before) if kind.status else {**after, "metadata": meta}
    if kind.custom:
        meta = before["metadata"]
    elif kind.plural == "pods":
        meta = _like(meta, before["metadata"], "ownerReferences")
    status = after.get("status")
    kept = {key: value for key, value in before.items() if key != "status"}
    return {**kept, "metadata": meta, **({} if status is None else {"status": status})}


def pod_spec_causes(before: dict[str, Any], after: dict[str, Any]) -> list[Cause]:
    """Why a pod's spec may not be changed so; empty if it may."""
    kept = [t for t in after.get("tolerations") or [] if t in (before.get("tolerations") or [])]
    if len(kept) < len(before.get("tolerations") or []):
        why = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        return [cause("FieldValueForbidden", "spec.tolerations", why)]
    if _frozen(before) == _frozen(after):
        return []
    return [cause("FieldValueForbidden", "spec", f"Forbidden: {POD_SPEC_RULE}")]


def _frozen(spec: dict[str, Any]) -> dict[str, Any]:
    frozen = {key: value for key, value in spec.items() if key not in _POD_CHANGES}
    for key in ("containers", "initContainers"):
        if key in frozen:
            frozen[key] = [{**container, "image": ""} for container in frozen[key]]
    return frozen


def _meta(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in after.items() if key != "managedFields"}
    meta.setdefault("uid", before["uid"])
    meta["resourceVersion"] = before["resourceVersion"]
    for key in _KEPT_META:
        meta = _like(meta, before, key)
    return _like(meta, before, "deletionGracePeriodSeconds")


def _like(target: dict[str, Any], model: dict[str, Any], key: str) -> dict[str, Any]:
    if key in model:
        return {**target, key: model[key]}
    return {name: value for name, value in target.items() if name != key}


def _with(
    after: dict[str, Any], meta: dict[str, Any], key: str, before: dict[str, Any]
) -> dict[str, Any]:
    return _like({**after, "metadata": meta}, before, key)
