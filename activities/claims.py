"""Other controllers at work on a node, by the marks that they leave. Pure.

We take turns with them and never fight. Wishes are no claims: cluster-autoscaler's soft
`DeletionCandidate` taint lands on every node that we empty ourselves.
"""

from collections.abc import Mapping
from typing import Any

from fleet.mark import UNDO_OUT_OF_SERVICE
from fleet.names import OUT_OF_SERVICE_TAINT
from fleet.node import Manifest, NodeState, Taint

_TAINTS: Mapping[str, str] = {
    "ToBeDeletedByClusterAutoscaler": "cluster-autoscaler is deleting the node",
    "karpenter.sh/disrupted": "Karpenter is disrupting the node",
    "karpenter.sh/disruption": "Karpenter is disrupting the node",
    "karpenter.sh/rebooting": "Karpenter is rebooting the node",
    "node.cloudprovider.kubernetes.io/shutdown": "the provider has shut the machine down",
    OUT_OF_SERVICE_TAINT: "somebody declared the node out of service",
    "medik8s.io/remediation": "a medik8s remediator is at work",
}

_ANNOTATIONS: Mapping[str, str] = {
    "weave.works/kured-reboot-in-progress": "kured is rebooting the node",
}

_LABELS: Mapping[tuple[str, str], str] = {
    ("remediation.medik8s.io/exclude-from-remediation", "true"): "medik8s has it in maintenance",
}

_UPGRADE_LABEL = "nvidia.com/gpu-driver-upgrade-state"
_UPGRADE_AT_REST = ("", "unknown", "upgrade-required", "upgrade-done", "upgrade-failed")


def claim_on(manifest: Manifest, node: NodeState) -> str | None:
    """Who is at work on the node, in words, or None."""
    if node.deleting:
        return "the Node is being deleted"
    annotations: Mapping[str, Any] = manifest["metadata"].get("annotations") or {}
    upgrade = node.labels.get(_UPGRADE_LABEL, "")
    found = [
        *(
            _TAINTS[each.key]
            for each in node.taints
            if each.key in _TAINTS and not _ours(each, node)
        ),
        *(words for key, words in _ANNOTATIONS.items() if key in annotations),
        *(words for (key, value), words in _LABELS.items() if node.labels.get(key) == value),
        *([f"a driver upgrade is at {upgrade}"] if upgrade not in _UPGRADE_AT_REST else []),
    ]
    return "; ".join(found) or None


def _ours(taint: Taint, node: NodeState) -> bool:
    """Whether it is one that we put on ourselves and have yet to take off."""
    recorded = node.mark is not None and UNDO_OUT_OF_SERVICE in node.mark.undo
    return recorded and taint.key == OUT_OF_SERVICE_TAINT
