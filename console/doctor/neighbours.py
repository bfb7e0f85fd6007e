"""What else in the cluster touches nodes: DaemonSets that our hold would keep away, and other
controllers that repair, drain or delete nodes. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.doctor.item import Item, note, ok, some, wrong
from fleet.names import HOLD_EFFECT, HOLD_TAINT, UNPROVEN_TAINT
from fleet.node import Manifest

DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
_OF_GPUS = re.compile(r"nvidia|gpu|dcgm|efa|rdma|infiniband|mofed|nccl")


def daemon_sets(sets: Sequence[Manifest]) -> Iterator[Item]:
    """Those that a GPU needs must run on a held node, or no repair of it can be proven."""
    needed = [each for each in sets if needed_by_gpus(each)]
    kept_away = [each for each in needed if not tolerates(each)]
    waiting = [each for each in needed if not tolerates(each, UNPROVEN_TAINT)]
    if not kept_away and not waiting:
        yield ok("daemonsets", f"{len(needed)} that GPUs need, and all tolerate the hold")
    for each in kept_away:
        says = f"GPUs need it, and our hold ({HOLD_TAINT}:{HOLD_EFFECT}) keeps its new pods away"
        yield wrong(f"daemonset {_full_name(each)}", says, _tolerate(each, HOLD_TAINT))
    for each in waiting:
        says = f"on new nodes with the taint {UNPROVEN_TAINT} it waits for what waits for it"
        yield note(f"daemonset {_full_name(each)}", says, _tolerate(each, UNPROVEN_TAINT))


def needed_by_gpus(manifest: Manifest) -> bool:
    """By what it is called, what it runs, or where it registers devices."""
    spec = manifest["spec"]["template"]["spec"]
    volumes = ((each.get("hostPath") or {}).get("path", "") for each in spec.get("volumes") or ())
    if any(path.rstrip("/") == DEVICE_PLUGINS for path in volumes):
        return True
    images = (each.get("image", "") for each in spec.get("containers") or ())
    words = (manifest["metadata"]["name"], *images)
    return any(_OF_GPUS.search(each.lower()) for each in words)


def tolerates(manifest: Manifest, taint: str = HOLD_TAINT) -> bool:
    """Whether its pods may start on a node with this taint of ours, by default a held one."""
    tolerations = manifest["spec"]["template"]["spec"].get("tolerations") or ()
    return any(_covers(each, taint) for each in tolerations)


def _covers(toleration: Mapping[str, Any], taint: str) -> bool:
    """Our taints have different values, so only `Exists` covers them."""
    if toleration.get("effect") not in (None, "", HOLD_EFFECT):
        return False
    if toleration.get("operator") != "Exists":
        return False
    return toleration.get("key") in (None, "", taint)


def _tolerate(manifest: Manifest, taint: str) -> str:
    """What an operator manages is told to the operator: it would take a patch back."""
    toleration = {"key": taint, "operator": "Exists", "effect": HOLD_EFFECT}
    owners = [each["kind"] for each in manifest["metadata"].get("ownerReferences") or ()]
    if "ClusterPolicy" in owners:
        patch = json.dumps({"spec": {"daemonsets": {"tolerations": [toleration]}}})
        return (
            f"kubectl patch clusterpolicy cluster-policy --type merge -p '{patch}'"
            "  # together with the tolerations that it lists already"
        )
    path = "/spec/template/spec/tolerations"
    there = manifest["spec"]["template"]["spec"].get("tolerations")
    value: object = toleration if there else [toleration]
    operation = [{"op": "add", "path": f"{path}/-" if there else path, "value": value}]
    meta = manifest["metadata"]
    return (
        f"kubectl -n {meta['namespace']} patch daemonset {meta['name']} --type json"
        f" -p '{json.dumps(operation)}'"
    )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A controller known by the name of its workload, and what it may do to a node of ours."""

    name: str
    workload: re.Pattern[str]
    says: str


NEIGHBOURS = (
    Neighbour(
        "cluster-autoscaler",
        re.compile("cluster-autoscaler"),
        "may scale a drained node down; gpumend stands aside for nodes that it is deleting",
    ),
    Neighbour(
        "gpu-operator",
        re.compile("gpu-operator"),
        "manages the driver's DaemonSets; its driver upgrades drain nodes on their own account",
    ),
    Neighbour(
        "node-problem-detector",
        re.compile("node-problem-detector"),
        "its conditions are heeded where the policy's signals translate them",
    ),
    Neighbour(
        "eks-node-monitoring-agent",
        re.compile("eks-node-monitoring-agent"),
        "its conditions are heeded; turn the node group's own auto repair off",
    ),
    Neighbour("kured", re.compile(r"^kured"), "reboots nodes on its own account"),
    Neighbour("draino", re.compile(r"^draino"), "drains nodes on its own account"),
)
HEALTH_CHECKS = "nodehealthchecks.remediation.medik8s.io"
REPAIR_GATE = "NodeRepair=true"


def controllers(workloads: Sequence[Manifest], kinds: Iterable[str]) -> Iterator[Item]:
    """`workloads` are Deployments and DaemonSets, `kinds` the names of custom resources."""
    for each in NEIGHBOURS:
        found = [work for work in workloads if each.workload.search(work["metadata"]["name"])]
        if found:
            yield note(each.name, f"{some(map(_full_name, found))}: {each.says}")
    for work in workloads:
        if work["metadata"]["name"] == "karpenter":
            yield _karpenter(work)
    if HEALTH_CHECKS in kinds:
        yield wrong(
            "medik8s",
            "NodeHealthChecks remediate nodes on their own account, too",
            "label GPU nodes remediation.medik8s.io/exclude-from-remediation=true",
        )


def _karpenter(manifest: Manifest) -> Item:
    containers = manifest["spec"]["template"]["spec"].get("containers") or ()
    variables = [each for one in containers for each in one.get("env") or ()]
    gates = next((e.get("value", "") for e in variables if e["name"] == "FEATURE_GATES"), "")
    version = next((one.get("image", "").rpartition(":")[2] for one in containers), "")
    says = f"{_full_name(manifest)} {version.split('@')[0]}"
    if REPAIR_GATE not in gates.replace(" ", ""):
        return ok("karpenter", f"{says}: its own node repair is off")
    meta = manifest["metadata"]
    off = gates.replace(" ", "").replace(REPAIR_GATE, "NodeRepair=false")
    command = (
        f"kubectl -n {meta['namespace']} set env deployment/{meta['name']} FEATURE_GATES={off}"
    )
    return wrong("karpenter", f"{says}: its own node repair deletes the nodes we mend", command)


def _full_name(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
