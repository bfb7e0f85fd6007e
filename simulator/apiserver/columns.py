"""What a person sees of an object in a list: the columns of `kubectl get`."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

Object = dict[str, Any]
Cell = Callable[[Object, datetime], Any]
WIDE = 1  # the priority of columns that only `-o wide` shows


class Column:
    """A column: its title, how a cell is made, and whether it is for `-o wide` only."""

    __slots__ = ("cell", "priority", "title")

    def __init__(self, title: str, cell: Cell, priority: int = 0) -> None:
        self.title = title
        self.cell = cell
        self.priority = priority


def columns(plural: str, group: str) -> tuple[Column, ...]:
    """The columns of a kind; name and age for those we know nothing of."""
    return _COLUMNS.get((plural, group), (_NAME, _AGE))


def age(moment: str | None, now: datetime) -> str:
    """How long ago, as kubectl writes it: `45s`, `12m`, `3h`, `9d`."""
    if not moment:
        return "<unknown>"
    seconds = max(0, int((now - datetime.fromisoformat(moment)).total_seconds()))
    for unit, length, until in (("s", 1, 120), ("m", 60, 180 * 60), ("h", 3600, 48 * 3600)):
        if seconds < until:
            return f"{seconds // length}{unit}"
    return f"{seconds // 86400}d"


def _path(*steps: str, absent: Any = "<none>") -> Cell:
    def cell(obj: Object, _now: datetime) -> Any:
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return absent if value is None or value == "" else value

    return cell


def _name(obj: Object, _now: datetime) -> str:
    return str(obj["metadata"]["name"])


def _age(obj: Object, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _count(field: str) -> Cell:
    return lambda obj, _now: len(obj.get(field) or ())


def _node_status(node: Object, _now: datetime) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((c["status"] for c in conditions if c["type"] == "Ready"), None)
    told = {"True": "Ready", "False": "NotReady"}.get(ready or "", "Unknown")
    cordoned = (node.get("spec") or {}).get("unschedulable")
    return f"{told},SchedulingDisabled" if cordoned else told


def _roles(node: Object, _now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    return ",".join(roles) or "<none>"


def _address(kind: str) -> Cell:
    def cell(node: Object, _now: datetime) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        return next((a["address"] for a in addresses if a["type"] == kind), "<none>")

    return cell


def _ready(pod: Object, _now: datetime) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def _restarts(pod: Object, _now: datetime) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(sum(status.get("restartCount", 0) for status in statuses))


def _pod_status(pod: Object, _now: datetime) -> str:
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if reason := (state.get(kind) or {}).get("reason"):
                return str(reason)
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _last_seen(event: Object, now: datetime) -> str:
    moment = event.get("lastTimestamp") or event.get("eventTime")
    return age(moment or event["metadata"].get("creationTimestamp"), now)


def _about(event: Object, _now: datetime) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


_NAME = Column("Name", _name)
_AGE = Column("Age", _age)
_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("nodes", ""): (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", _roles),
        _AGE,
        Column("Version", _path("status", "nodeInfo", "kubeletVersion", absent="")),
        Column("Internal-IP", _address("InternalIP"), WIDE),
        Column("External-IP", _address("ExternalIP"), WIDE),
        Column("OS-Image", _path("status", "nodeInfo", "osImage", absent="<unknown>"), WIDE),
        Column(
            "Kernel-Version", _path("status", "nodeInfo", "kernelVersion", absent="<unknown>"), WIDE
        ),
        Column(
            "Container-Runtime",
            _path("status", "nodeInfo", "containerRuntimeVersion", absent="<unknown>"),
            WIDE,
        ),
    ),
    ("pods", ""): (
        _NAME,
        Column("Ready", _ready),
        Column("Status", _pod_status),
        Column("Restarts", _restarts),
        _AGE,
        Column("IP", _path("status", "podIP"), WIDE),
        Column("Node", _path("spec", "nodeName"), WIDE),
        Column("Nominated Node", _path("status", "nominatedNodeName"), WIDE),
        Column("Readiness Gates", lambda _obj, _now: "<none>", WIDE),
    ),
    ("events", ""): (
        Column("Last Seen", _last_seen),
        Column("Type", _path("type", absent="")),
        Column("Reason", _path("reason", absent="")),
        Column("Object", _about),
        Column("Message", _path("message", absent="")),
    ),
    ("namespaces", ""): (_NAME, Column("Status", _path("status", "phase")), _AGE),
    ("configmaps", ""): (_NAME, Column("Data", _count("data")), _AGE),
    ("secrets", ""): (_NAME, Column("Type", _path("type")), Column("Data", _count("data")), _AGE),
    ("leases", "coordination.k8s.io"): (
        _NAME,
        Column("Holder", _path("spec", "holderIdentity", absent="")),
        _AGE,
    ),
    ("poddisruptionbudgets", "policy"): (
        _NAME,
        Column("Min Available", _path("spec", "minAvailable", absent="N/A")),
        Column("Max Unavailable", _path("spec", "maxUnavailable", absent="N/A")),
        Column("Allowed Disruptions", _path("status", "disruptionsAllowed", absent=0)),
        _AGE,
    ),
}
