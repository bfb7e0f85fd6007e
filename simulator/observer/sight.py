"""What an object said of itself in a write's answer: nodes and pods as the judge sees them."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

OURS = "gpumend.io/"
HOLD = "gpumend.io/hold"
UNPROVEN = "gpumend.io/unproven"
MARK = "gpumend.io/incident"
PAUSE = "gpumend.io/pause"
OPENED = "gpumend.io/open"
BREAKER = "gpumend-breaker"
ENGINE = ("system:serviceaccount:gpumend:watcher", "system:serviceaccount:gpumend:worker")
AGENT = "system:serviceaccount:gpumend:gpumend-agent"
OPERATION, STEP = "gpumend.io/operation", "gpumend.io/step"
REPAIRS = ("reset-gpu", "reboot")
"""Steps of pods that repair a node."""
PROVIDED = {
    "restart": "reboot",
    "power-cycle": "reboot",
    "start": "reboot",
    "terminate": "replace",
}
"""Changes of a machine by its provider, and the repair that each is."""

Json = Mapping[str, Any]


def metadata(thing: Json) -> Json:
    """The metadata of an object, empty where there are none."""
    found: Json = thing.get("metadata") or {}
    return found


def labels(thing: Json) -> Mapping[str, str]:
    """The labels of an object."""
    found: Mapping[str, str] = metadata(thing).get("labels") or {}
    return found


def taints(node: Json) -> dict[str, Json]:
    """The taints of a node by key and effect."""
    found = (node.get("spec") or {}).get("taints") or ()
    return {f"{each['key']}:{each['effect']}": each for each in found}


def hold(node: Json) -> str | None:
    """The fault that our taint on a node names, None where it is not held."""
    return next(
        (
            str(each.get("value", ""))
            for key, each in taints(node).items()
            if key.startswith(HOLD + ":")
        ),
        None,
    )


def unproven(node: Json) -> str | None:
    """Why a node takes no work before a proof, None where it may: empty for one that is new."""
    return next(
        (
            str(each.get("value", ""))
            for key, each in taints(node).items()
            if key.startswith(UNPROVEN + ":")
        ),
        None,
    )


def mark(node: Json) -> Json | None:
    """Our mark on a node, None where there is none (or none that can be read)."""
    text = (metadata(node).get("annotations") or {}).get(MARK)
    if not text:
        return None
    try:
        found: Json = json.loads(text)
    except ValueError:
        return None
    return found


def conditions(node: Json) -> dict[str, Json]:
    """The conditions of a node by type."""
    found = (node.get("status") or {}).get("conditions") or ()
    return {str(each["type"]): each for each in found}


def faults(node: Json) -> set[str]:
    """Names of the faults that the agent's conditions state as false, positively."""
    return {
        name
        for kind, each in conditions(node).items()
        if kind.startswith(OURS) and each["status"] == "False"
        for name in re.findall(r"\bfault=([a-z-]+)", str(each.get("message", "")))
    }


def stated(node: Json) -> set[tuple[str, str]]:
    """The same with their parts, as (part, fault)."""
    return {
        (part, name)
        for kind, each in conditions(node).items()
        if kind.startswith(OURS) and each["status"] == "False"
        for part, name in _STATED.findall(str(each.get("message", "")))
    }


_STATED = re.compile(r"\bpart=(\S+) fault=([a-z-]+)")


def machine(node: Json) -> str:
    """By which the provider knows the machine of a node; empty where it says none."""
    return str((node.get("spec") or {}).get("providerID", ""))


def accused(node: Json, foreign: Collection[str]) -> bool:
    """Whether a condition of somebody else, of these types, calls a node sick."""
    return any(
        kind in foreign and each["status"] == "False" for kind, each in conditions(node).items()
    )


def ready(node: Json) -> bool:
    """Whether a node takes pods, as its kubelet and the controllers say."""
    return conditions(node).get("Ready", {}).get("status") == "True"


def boot_id(node: Json) -> str:
    """The boot of a node."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


@dataclass(frozen=True, slots=True)
class StepPod:
    """A pinned pod of ours: which step of which operation on which node."""

    name: str
    operation: str
    step: str
    node: str


def step_pod(pod: Json) -> StepPod | None:
    """A pod as a step of ours; None if it is not one."""
    found = labels(pod)
    if STEP not in found:
        return None
    spec = pod.get("spec") or {}
    name, node = str(metadata(pod).get("name", "")), str(spec.get("nodeName", ""))
    return StepPod(name, found.get(OPERATION, ""), found[STEP], node)


def result(pod: Json) -> str:
    """What a step's termination message says of it: done, failed, refused; empty before its end."""
    return str(_report(pod).get("result", ""))


def found(pod: Json) -> set[tuple[str, str, str]]:
    """What a step says that it found, as (check, part, fault)."""
    findings = _report(pod).get("findings") or ()
    return {
        (str(each.get("check")), str(each.get("part")), str(each["fault"]))
        for each in findings
        if each.get("fault")
    }


def _report(pod: Json) -> Json:
    """The termination message of a step; empty before its end, and where it cannot be read."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    for each in statuses:
        terminated = (each.get("state") or {}).get("terminated") or {}
        try:
            said = json.loads(terminated.get("message", ""))
        except (ValueError, TypeError):
            continue
        if isinstance(said, dict):
            return said
    return {}


def unevictable(pod: Json) -> str:
    """Why a pod may never be evicted by us; empty where it may."""
    if "kubernetes.io/config.mirror" in (metadata(pod).get("annotations") or {}):
        return "a mirror pod"
    owners = metadata(pod).get("ownerReferences") or ()
    if any(each.get("controller") and each.get("kind") == "DaemonSet" for each in owners):
        return "a DaemonSet's pod"
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return "a finished pod"
    return ""


def tolerates_all(pod: Json) -> bool:
    """Whether a pod runs whatever taints its node has."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    return any(each.get("operator") == "Exists" and not each.get("key") for each in tolerations)


def workload(pod: Json) -> bool:
    """A pod that has to be gone from a node before a step may disrupt it."""
    return not unevictable(pod) and step_pod(pod) is None


def handed_off(event: Json) -> str:
    """The incident that an Event of the engine says was handed off, empty for any other Event."""
    return _incident(event) if event.get("reason") == "IncidentHandedOff" else ""


def asked(event: Json) -> str:
    """The incident that an Event of the engine says asks a person, empty for any other Event."""
    return _incident(event) if event.get("reason") == "IncidentAsks" else ""


def agreed(event: Json) -> str:
    """The node of an Event by which a person says yes, empty for any other Event."""
    if event.get("reason") != "PersonApproved":
        return ""
    return str((event.get("involvedObject") or {}).get("name", ""))


def person(user: str) -> bool:
    """Whether a user is a person."""
    return user.startswith("person:")


def breakers(thing: Json) -> Mapping[str, str]:
    """The phase of each breaker that the engine's ConfigMap records; empty for any other object."""
    if thing.get("kind") != "ConfigMap" or metadata(thing).get("name") != BREAKER:
        return {}
    recorded = [json.loads(text) for text in (thing.get("data") or {}).values()]
    return {each["scope"]: each["phase"] for each in recorded if "phase" in each}


def opened(node: Json) -> str:
    """The fault that a person named in opening an incident by hand, empty where nobody did."""
    text = (metadata(node).get("annotations") or {}).get(OPENED, "")
    try:
        return str(json.loads(text)["fault"]) if text else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _incident(event: Json) -> str:
    return str((metadata(event).get("annotations") or {}).get(MARK, ""))
