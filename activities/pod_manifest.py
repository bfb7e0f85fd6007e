"""The Pod that carries out one step on one node: its manifest, and what its end says. Pure.

Creating it, and waiting for it, is `pinned_pod.py`; what it does inside is the node's business.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from activities.node_pods import is_finished, phase_of
from activities.pods import OPERATION_LABEL
from fleet.instant import format_instant
from fleet.names import DOMAIN, NAMESPACE
from fleet.pair import format_place
from fleet.ports import Json
from fleet.step import NodeStepRequest, format_finding

STEP_LABEL = f"{DOMAIN}/step"
RESULT_FILE = "/dev/termination-log"
HOST_ROOT = "/host"

MARGIN_SECONDS = 30
"""How much longer than its not-after a Pod may run, to say that it was too late."""


def pod_name(operation: str) -> str:
    """The name that makes creating it idempotent."""
    return f"step-{operation}"


HANDED_ON = ("GPUMEND_DCGM_DIAG_LEVEL", "GPUMEND_DCGM_HOST")
"""Settings of a worker that are meant for what runs on the nodes."""
HANDED_ON_ALL = ("NCCL_", "FI_")
"""And all that begin so: how NCCL and libfabric find the network between nodes."""


def step_pod(
    request: NodeStepRequest,
    node: str,
    image: str,
    now: datetime,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    """A Pod bound to this node: tolerates everything, requests nothing, is never restarted.

    It uses the host's network, so that a broken overlay does not keep a repair away, and no service
    account, since it needs nothing of the API.
    """
    seconds = int((request.not_after - now).total_seconds()) + MARGIN_SECONDS
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(request.operation),
            "namespace": NAMESPACE,
            "labels": {OPERATION_LABEL: request.operation, STEP_LABEL: request.step.value},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": max(MARGIN_SECONDS, seconds),
            "terminationGracePeriodSeconds": 10,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostPID": True,
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "tolerations": [{"operator": "Exists"}],
            "containers": [_container(request, image, settings)],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        },
    }


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether it runs no more, in whatever way."""
    return is_finished(pod) or _terminated(pod) is not None


def has_started(pod: Mapping[str, Any]) -> bool:
    """Whether its container runs or ran; Pending with a waiting container has not."""
    states = [each.get("state") or {} for each in _statuses(pod)]
    running = any("running" in state or "terminated" in state for state in states)
    return running or phase_of(pod) == "Running" or is_finished(pod)


def termination_message(pod: Mapping[str, Any]) -> str:
    """What its container left behind; empty where the kubelet says nothing."""
    terminated = _terminated(pod)
    return str((terminated or {}).get("message") or "")


def why_waiting(pod: Mapping[str, Any]) -> str:
    """Why it has not started, in the kubelet's words (`ImagePullBackOff`), where it says any."""
    waiting = ((each.get("state") or {}).get("waiting") or {} for each in _statuses(pod))
    reasons = [str(each["reason"]) for each in waiting if each.get("reason")]
    status = pod.get("status") or {}
    return ", ".join(reasons) or str(status.get("message") or status.get("reason") or "no word")


def command(request: NodeStepRequest) -> list[str]:
    """What runs in the container."""
    words = ["gpumend", "node-step", request.step.value]
    options = {
        "--operation": [request.operation],
        "--incident": [request.incident],
        "--boot-id": [request.boot_id],
        "--not-after": [format_instant(request.not_after)],
        "--root": [HOST_ROOT],
        "--result": [RESULT_FILE],
        "--part": [str(part) for part in request.parts],
        "--check": list(request.checks),
        "--pair": [format_place(request.pair)] if request.pair else [],
        "--word": [format_finding(request.word)] if request.word else [],
    }
    return words + [word for name, values in options.items() for v in values for word in (name, v)]


def _container(request: NodeStepRequest, image: str, settings: Mapping[str, str]) -> Json:
    return {
        "name": "step",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command(request),
        "env": [
            {"name": each, "value": value}
            for each, value in sorted(settings.items())
            if each in HANDED_ON or each.startswith(HANDED_ON_ALL)
        ],
        "terminationMessagePath": RESULT_FILE,
        "terminationMessagePolicy": "File",
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "host", "mountPath": HOST_ROOT}],
    }


def _statuses(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (pod.get("status") or {}).get("containerStatuses") or ()


def _terminated(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    states = (each.get("state") or {} for each in _statuses(pod))
    return next((state["terminated"] for state in states if "terminated" in state), None)
