"""Nodes to prove, and what is asked about them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.names import HOLD_EFFECT, PROOF_ANNOTATION, UNPROVEN_TAINT
from fleet.node import NodeIdentity, NodeState, read_node
from fleet.part import Part
from fleet.proof import Why
from fleet.proving import ProofEnd, ProveRequest, ProveTask
from tests.cluster import BOOT, SOON, now, pod_manifest, seen_node

OK = Finding("pci", Part("gpu:3"), Verdict.OK)
UNKNOWN = Finding("pci", Part("gpu:3"), Verdict.UNKNOWN)
SICK = Finding("compute", Part("gpu:3"), Verdict.FAULT, FaultName.WRONG_RESULTS)
FOREIGN = {"key": "example.com/mine", "value": "x", "effect": "NoExecute"}


def taint(why: Why = Why.JOINED) -> dict[str, str]:
    return {"key": UNPROVEN_TAINT, "value": why.value, "effect": HOLD_EFFECT}


def unproven(why: Why = Why.JOINED, **about: Any) -> dict[str, Any]:
    """About a healthy node that carries the taint."""
    return {"marked": None, "faults": (), "taints": [FOREIGN, taint(why)], **about}


def serving(**about: Any) -> dict[str, Any]:
    """About a healthy node in service."""
    return {"marked": None, "faults": (), "taints": [FOREIGN], **about}


def a_request(
    node: NodeIdentity, why: Why = Why.JOINED, end: ProofEnd = ProofEnd.UNKNOWN, **changes: Any
) -> ProveRequest:
    plain = ProveRequest(
        operation=f"prove-{node.machine}-00000000-1",
        task=ProveTask(node, BOOT, why),
        since=now(),
        deadline=now() + SOON,
        checks=("pci",),
        end=end,
    )
    return replace(plain, **changes)


def gpu_pod(name: str, node: str = "n1", **spec: Any) -> dict[str, Any]:
    """A Pod of a job that may have a GPU open."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return pod_manifest(name, node, containers=[container], **spec)


def remembers(proof: str) -> dict[str, Any]:
    """A patch that writes what is remembered of a proof."""
    return {"metadata": {"annotations": {PROOF_ANNOTATION: proof}}}


def a_node(name: str = "n1", proof: str = "", **about: Any) -> NodeState:
    """A NodeState without a server, of a machine of its own."""
    about.setdefault("provider_id", f"cloud:///{name}")
    about.setdefault("marked", None)
    manifest, _ = seen_node(**{"faults": (), "taints": [], **about, "name": name})
    if proof:
        manifest["metadata"]["annotations"][PROOF_ANNOTATION] = proof
    return read_node(manifest, "c1")


NO_WAIT = timedelta(seconds=0.2)
