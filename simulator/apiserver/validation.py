"""Rules an object must keep: names, labels, annotations, taints, the parts of a pod.

Each check returns causes of a 422 (`{reason, message, field}`), in the words of Kubernetes.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from simulator.apiserver.kinds import Kind

Cause = dict[str, str]

ANNOTATIONS_LIMIT_BYTES = 256 << 10
CHECKED_KEYS = 4096  # whose result is remembered
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_PATH_NAMED = {"clusterroles", "clusterrolebindings", "roles", "rolebindings"}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def cause(reason: str, field: str, message: str) -> Cause:
    """One cause of a 422."""
    return {"reason": reason, "message": message, "field": field}


def bad_value(field: str, value: Any, why: str) -> Cause:
    """The cause for a value that is there and wrong."""
    shown = f'"{value}"' if isinstance(value, str) else value
    return cause("FieldValueInvalid", field, f"Invalid value: {shown}: {why}")


def required(field: str, why: str = "") -> Cause:
    """The cause for a value that is missing."""
    return cause("FieldValueRequired", field, "Required value" + (f": {why}" if why else ""))


def check(kind: Kind, obj: dict[str, Any]) -> list[Cause]:
    """All mistakes in an object."""
    found = list(_check_meta(kind, obj["metadata"]))
    if kind.custom:
        return found
    checks = {
        "nodes": _check_node,
        "pods": _check_pod,
        "leases": _check_lease,
        "events": _check_event,
        "poddisruptionbudgets": _check_budget,
    }
    if kind.plural in checks:
        found += checks[kind.plural](obj)
    return found


def _check_meta(kind: Kind, meta: dict[str, Any]) -> Iterator[Cause]:
    name = meta["name"]
    if kind.plural == "namespaces":
        if len(name) > 63 or not _LABEL.fullmatch(name):
            yield bad_value("metadata.name", name, LABEL_RULE)
    elif kind.plural in _PATH_NAMED:
        if "/" in name or "%" in name:
            yield bad_value("metadata.name", name, "may not contain '/' or '%'")
    elif len(name) > 253:
        yield bad_value("metadata.name", name, "must be no more than 253 characters")
    elif not _SUBDOMAIN.fullmatch(name):
        yield bad_value("metadata.name", name, SUBDOMAIN_RULE)
    for key, value in (meta.get("labels") or {}).items():
        yield from key_causes("metadata.labels", key)
        yield from value_causes("metadata.labels", value)
    yield from _check_annotations(meta.get("annotations") or {})


def _check_annotations(annotations: dict[str, str]) -> Iterator[Cause]:
    total = 0
    for key, value in annotations.items():
        yield from key_causes("metadata.annotations", key.lower())
        total += len(key.encode()) + len(value.encode())
    if total > ANNOTATIONS_LIMIT_BYTES:
        why = f"Too long: may not be more than {ANNOTATIONS_LIMIT_BYTES} bytes"
        yield cause("FieldValueTooLong", "metadata.annotations", why)


@lru_cache(maxsize=CHECKED_KEYS)
def key_causes(field: str, key: str) -> tuple[Cause, ...]:
    """Mistakes in a qualified name: `prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    found = []
    if slash and (not prefix or not _SUBDOMAIN.fullmatch(prefix)):
        why = "prefix part must be non-empty" if not prefix else f"prefix part {SUBDOMAIN_RULE}"
        found.append(bad_value(field, key, why))
    if not name:
        found.append(bad_value(field, key, "name part must be non-empty"))
    elif len(name) > 63:
        found.append(bad_value(field, key, "name part must be no more than 63 bytes"))
    elif not _QUALIFIED.fullmatch(name):
        found.append(bad_value(field, key, KEY_RULE))
    return tuple(found)


def value_causes(field: str, value: str) -> Iterator[Cause]:
    """Mistakes in the value of a label or a taint."""
    if len(value) > 63:
        yield bad_value(field, value, "must be no more than 63 bytes")
    if not _LABEL_VALUE.fullmatch(value):
        yield bad_value(field, value, VALUE_RULE)


def _check_node(node: dict[str, Any]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(node.get("spec", {}).get("taints") or []):
        field = f"metadata.taints[{i}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        found += key_causes(f"{field}.key", key)
        found += value_causes(f"{field}.value", taint.get("value", ""))
        found += _check_effect(f"{field}.effect", effect)
        if (key, effect) in seen:
            why = f"Duplicate value: {taint}: taints must be unique by key and effect pair"
            found.append(cause("FieldValueDuplicate", field, why))
        seen.add((key, effect))
    return found


def _check_effect(field: str, effect: str) -> Iterator[Cause]:
    if not effect:
        yield required(field)
    elif effect not in _EFFECTS:
        names = ", ".join(f'"{name}"' for name in sorted(_EFFECTS))
        why = f'Unsupported value: "{effect}": supported values: {names}'
        yield cause("FieldValueNotSupported", field, why)


def _check_lease(lease: dict[str, Any]) -> list[Cause]:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if seconds is None or seconds > 0:
        return []
    return [bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")]


def _check_event(event: dict[str, Any]) -> list[Cause]:
    """An event lives where its object does; one about a cluster-scoped object in `default`."""
    about = event.get("involvedObject") or {}
    namespace = event["metadata"]["namespace"]
    wanted = about.get("namespace") or "default"
    if namespace == wanted or (not about.get("namespace") and namespace == "kube-system"):
        return []
    why = "does not match event.namespace"
    return [bad_value("involvedObject.namespace", about.get("namespace", ""), why)]


def _check_budget(budget: dict[str, Any]) -> list[Cause]:
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    status = budget.get("status") or {}
    return [
        bad_value(f"status.{name}", status[name], "must be greater than or equal to 0")
        for name in counts
        if status.get(name, 0) < 0
    ]


def _check_pod(pod: dict[str, Any]) -> list[Cause]:
    containers = pod.get("spec", {}).get("containers") or []
    if not containers:
        return [required("spec.containers")]
    found: list[Cause] = []
    for i, container in enumerate(containers):
        field = f"spec.containers[{i}]"
        if not container.get("name"):
            found.append(required(f"{field}.name"))
        elif not _LABEL.fullmatch(container["name"]):
            found.append(bad_value(f"{field}.name", container["name"], LABEL_RULE))
        if not container.get("image"):
            found.append(required(f"{field}.image"))
    return found
