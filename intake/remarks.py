"""What people are told about single nodes: why one is not held, what on it cannot be read, what was
left behind. Each once, and that it is over.
"""

import asyncio

from fleet.node import NodeState
from intake.admission import off_limits
from intake.marks import Facts, Standing, standing
from intake.surroundings import Surroundings


class Remarks:
    """Says it in the log; a request that means nothing also to those who look at the node."""

    def __init__(self, given: Surroundings) -> None:
        self._journal = given.journal
        self._complain = given.complain
        self._complaints: set[asyncio.Future[None]] = set()

    def about(self, node: NodeState, facts: Facts) -> None:
        """Everything that is to be said of the node now."""
        self._mark(node)
        self._blocked(node, facts)
        self._request(node)
        self._left_hold(node, facts)

    def _mark(self, node: NodeState) -> None:
        name, problem = node.identity.name, node.mark_problem
        remedy = "restore or remove the annotation gpumend.io/incident"
        if problem:
            self._journal.trouble(
                f"mark {name}", "cannot-read-mark", node=name, because=problem, remedy=remedy
            )
        else:
            self._journal.over(f"mark {name}", "mark-readable-again", node=name)

    def _blocked(self, node: NodeState, facts: Facts) -> None:
        name = node.identity.name
        if facts.blocked:
            self._journal.trouble(f"gate {name}", "not-held", node=name, because=facts.blocked)
        else:
            self._journal.over(f"gate {name}", "no-longer-barred", node=name)

    def _request(self, node: NodeState) -> None:
        name, request, problem = node.identity.name, node.open_request, node.open_problem
        if request:
            self._journal.trouble(
                f"open {name}",
                "asked-to-open",
                node=name,
                fault=request.fault.value,
                by=request.actor,
                because=request.reason,
            )
        elif not problem:
            self._journal.over(f"open {name}", "request-is-gone", node=name)
        elif self._journal.trouble(f"open {name}", "cannot-open", node=name, because=problem):
            text = f"annotation gpumend.io/open changes nothing: {problem}"
            complaint = asyncio.ensure_future(
                self._complain(node.identity, "IncidentNotOpened", text)
            )
            self._complaints.add(complaint)
            complaint.add_done_callback(self._complaints.discard)

    def _left_hold(self, node: NodeState, facts: Facts) -> None:
        """A hold that no incident stands behind, on a node that we must keep off."""
        name = node.identity.name
        orphan = standing(node) in (Standing.ORPHAN, Standing.STRAY)
        why = off_limits(node, facts.now) if orphan else None
        remedy = "take the taint gpumend.io/hold off by hand, or let gpumend at the node again"
        if why:
            self._journal.trouble(
                f"left {name}", "hold-left", node=name, because=why.value, remedy=remedy
            )
        else:
            self._journal.over(f"left {name}", "hold-no-longer-left", node=name)
