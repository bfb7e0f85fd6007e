"""The cap on holds: no scope that the breaker judges as one is left without a node that serves.

Small scopes are exempt from the breaker; this keeps a bad sensor from closing one altogether.
"""

from collections.abc import Callable

from fleet.node import NodeState
from fleet.report import Report
from intake.muster import Muster


class Cap:
    """`busy` says whether a write of ours to a node is under way: it may be a hold."""

    def __init__(self, muster: Muster, busy: Callable[[str], bool]) -> None:
        self._muster = muster
        self._busy = busy

    def gate(self, node: NodeState, report: Report) -> str:
        """Why this node must not be held now. The only node of a scope may: it guards nothing."""
        del report
        name = node.identity.name
        member = self._muster.members.get(name)
        if member is None or not member.serves or len(self._muster.everyone(member.scope)) == 1:
            return ""
        others = (each for each in self._muster.serving(member.scope) if each != name)
        if any(not self._busy(each) for each in others):
            return ""
        return f"last-node: nothing else of {member.scope} takes new work"
