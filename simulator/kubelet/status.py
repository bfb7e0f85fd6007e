"""The statuses that a kubelet writes, as JSON. Pure: what happened goes in, with its time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simulator.kubelet.container import KILLED, Ended

Json = dict[str, Any]


def rfc3339(at: datetime) -> str:
    """Seconds, in UTC, as Kubernetes writes times."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str, reason: str, message: str, now: datetime) -> Json:
    """A condition of a Node, with its heartbeat."""
    at = rfc3339(now)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }


def running(pod: Mapping[str, Any], now: datetime, restarts: int = 0) -> Json:
    """A pod whose container runs and is ready."""
    state = {"running": {"startedAt": rfc3339(now)}}
    return {
        "phase": "Running",
        "startTime": (pod.get("status") or {}).get("startTime") or rfc3339(now),
        "conditions": _ready("True", now),
        "containerStatuses": [_container(pod, state, ready=True, restarts=restarts)],
    }


def finished(pod: Mapping[str, Any], ended: Ended, now: datetime) -> Json:
    """A pod whose container ended and will not start again."""
    terminated: Json = {
        "exitCode": ended.exit_code,
        "reason": ended.reason or ("Completed" if ended.exit_code == 0 else "Error"),
        "startedAt": rfc3339(ended.started),
        "finishedAt": rfc3339(ended.finished),
    }
    if ended.message:
        terminated["message"] = ended.message
    return {
        "phase": "Succeeded" if ended.exit_code == 0 else "Failed",
        "conditions": _ready("False", now),
        "containerStatuses": [_container(pod, {"terminated": terminated}, ready=False)],
    }


def overdue(now: datetime) -> Json:
    """What `activeDeadlineSeconds` makes of a pod."""
    return {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
        "conditions": _ready("False", now),
    }


def lost(pod: Mapping[str, Any], now: datetime) -> Json:
    """A pod that ran when its machine went down, and is never started again."""
    message = "The container could not be located when the pod was terminated"
    ended = Ended(KILLED, message, now, now, "ContainerStatusUnknown")
    return finished(pod, ended, now)


def _ready(status: str, now: datetime) -> list[Json]:
    at = rfc3339(now)
    return [
        {"type": kind, "status": status, "lastTransitionTime": at}
        for kind in ("Ready", "ContainersReady")
    ]


def _container(pod: Mapping[str, Any], state: Json, ready: bool, restarts: int = 0) -> Json:
    container = pod["spec"]["containers"][0]
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
    }
