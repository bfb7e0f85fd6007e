"""The ends that activities share, each with the node as it was last seen. Pure."""

from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind

NODE_GONE = "node-gone"
"""SUPERSEDED: there is no Node of this name (any more)."""
ANOTHER_MACHINE = "another-machine"
"""SUPERSEDED: the name belongs to another machine now."""
REBORN = "reborn"
"""CANCELLED: the same machine, as a new Node object; `Outcome.uid` is the new one."""
REFUSED = "refused"
"""PERMANENT: the API server said no to a call that no step expects a no to."""
CONTENDED = "contended"
"""TRANSIENT: others kept changing the node faster than we could."""
BOOT_UNKNOWN = "boot-unknown"
"""TRANSIENT: no boot id to compare with; what cannot be compared justifies nothing."""

DETAIL_LIMIT = 2_000
"""Characters of a detail: it ends in histories, where people read one sentence."""


def ended(
    kind: OutcomeKind, reason: str = "", detail: str = "", node: NodeState | None = None
) -> Outcome:
    """An outcome that carries the node's boot id and UID where there is a node."""
    return Outcome(
        kind=kind,
        reason=reason,
        detail=detail[:DETAIL_LIMIT],
        boot_id=node.boot_id if node else "",
        uid=node.identity.uid if node else "",
    )


def succeeded(detail: str = "", node: NodeState | None = None) -> Outcome:
    """Done, and seen to be done."""
    return ended(OutcomeKind.SUCCEEDED, detail=detail, node=node)


def cancelled(reason: str, detail: str, node: NodeState | None = None) -> Outcome:
    """Its premise was gone before it acted, or it was stopped."""
    return ended(OutcomeKind.CANCELLED, reason, detail, node)


def node_gone(name: str) -> Outcome:
    """No Node of this name: not a success of anything."""
    return ended(OutcomeKind.SUPERSEDED, NODE_GONE, f"there is no node {name}")
