"""Nodes that Karpenter made: their NodeClaims, and how to keep its hands off. Finding only."""

from activities.waiting import list_all
from fleet.errors import NotFound
from fleet.names import DOMAIN
from fleet.node import Manifest
from fleet.ports import Json, Kubernetes

NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
GROUP = "karpenter.sh"
POOL_LABEL = f"{GROUP}/nodepool"
VETO = f"{GROUP}/do-not-repair"
"""Annotation on a Node by which Karpenter leaves its repair to others."""
OPERATION_ANNOTATION = f"{DOMAIN}/operation"
"""On a NodeClaim: the operation of ours that deletes it."""


def karpenters(node: Manifest) -> bool:
    """Whether the Node belongs to Karpenter."""
    return _owner(node) is not None or POOL_LABEL in (node["metadata"].get("labels") or {})


async def claim_of(kubernetes: Kubernetes, node: Manifest) -> Json | None:
    """The NodeClaim of a Node: by its owner reference, else by the machine; None without one."""
    if not karpenters(node):
        return None
    owner = _owner(node)
    try:
        if owner:
            return await kubernetes.get(f"{NODE_CLAIMS}/{owner}")
        claims = (await list_all(kubernetes, NODE_CLAIMS)).objects
    except NotFound:
        return None
    return next((each for each in claims if _is_of(each, node)), None)


async def claim_by(kubernetes: Kubernetes, operation: str) -> Json | None:
    """The NodeClaim that an operation of ours deletes, if it is still there."""
    try:
        claims = (await list_all(kubernetes, NODE_CLAIMS)).objects
    except NotFound:
        return None
    return next((each for each in claims if deleted_by(each) == operation), None)


def deleted_by(claim: Manifest) -> str:
    """The operation of ours that deletes it; empty where it is none of ours."""
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(OPERATION_ANNOTATION, ""))


def _owner(node: Manifest) -> str | None:
    for each in node["metadata"].get("ownerReferences") or ():
        group = str(each.get("apiVersion", "")).partition("/")[0]
        if each.get("kind") == "NodeClaim" and group == GROUP:
            return str(each["name"])
    return None


def _is_of(claim: Manifest, node: Manifest) -> bool:
    status = claim.get("status") or {}
    provider_id = (node.get("spec") or {}).get("providerID")
    same = bool(provider_id) and status.get("providerID") == provider_id
    return same or status.get("nodeName") == node["metadata"]["name"]
