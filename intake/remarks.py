"""What people are told about single nodes: why one is not held, what on it cannot be read, what was
left behind. Each once, and that it is over.
"""

import asyncio
from collections.abc import Coroutine

from fleet.fault import Fault
from fleet.node import NodeState
from intake.admission import off_limits
from intake.marks import Facts, Standing, standing
from intake.surroundings import Surroundings


class Remarks:
    """Says it in the log; a request that means nothing also to those who look at the node."""

    def __init__(self, given: Surroundings) -> None:
        self._journal = given.journal
        self._complain = given.complain
        self._tell = given.tell
        self._tells = given.rules.tells
        self._said: set[asyncio.Future[None]] = set()

    def about(self, node: NodeState, facts: Facts) -> None:
        """Everything that is to be said of the node now."""
        self._mark(node)
        self._blocked(node, facts)
        self._request(node)
        self._left_hold(node, facts)
        for fault in filter(self._tells, facts.report.faults):
            self._unheld(node, fault)

    def _unheld(self, node: NodeState, fault: Fault) -> None:
        """Said once as long as it stands; one that comes back later is said again by its time."""
        key = f"fault {node.identity.uid} {fault.key} {fault.since.isoformat()}"
        name, what = node.identity.name, fault.name.value
        if self._journal.trouble(key, "tell-fault", node=name, fault=what, part=fault.part):
            self._aside(self._tell(node.identity, fault))

    def _aside(self, saying: Coroutine[None, None, None]) -> None:
        """Judging nodes does not wait for what people are told."""
        task = asyncio.ensure_future(saying)
        self._said.add(task)
        task.add_done_callback(self._said.discard)

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
            self._aside(self._complain(node.identity, "IncidentNotOpened", text))

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
