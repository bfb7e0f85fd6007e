"""The workflow of one sweep: find idle nodes whose proof is old, and have a few at a time proven.

Id `sweep/<cluster>-<time>`, by the schedule `sweep/<cluster>`; no two run side by side. It begins
no more proofs once there is a sign that it should not go on: the budget lends nothing (frozen,
breaker, full), too much was found, or its time is over. Those that have begun end by themselves.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from workflows.timing import BUDGET_RETRY

with workflow.unsafe.imports_passed_through():
    from activities.search_attributes import proof_attributes
    from fleet import names
    from fleet.proving import ProofClosing, ProofEnd, ProveTask
    from policies.prove_terms import ProveTerms
    from policies.proving import Candidates

LOOK_LIMIT = timedelta(minutes=10)
"""For the list of nodes, and the Pods of some hundreds."""
MOST_FOUND = 3
"""Nodes with faults before one sweep stops: healthy fleets have fewer, so the check is suspect."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many proofs ended how, and why the sweep ended."""

    ends: dict[str, int]
    because: str
    due: int = 0


@dataclass(slots=True)
class Course:
    """What is left to do, and why no more is begun, once that is so."""

    until: datetime
    left: deque[ProveTask]
    ends: Counter[str] = field(default_factory=Counter)
    because: str = ""

    def next(self, now: datetime) -> ProveTask | None:
        """The node whose turn it is."""
        if not self.because and now >= self.until:
            self.because = "its time is over"
        return self.left.popleft() if self.left and not self.because else None

    def ended(self, closing: ProofClosing) -> None:
        """Take in how a proof ended."""
        self.ends[closing.end.value] += 1
        if closing.end is ProofEnd.NO_ROOM:
            self.because = self.because or f"no lease: {'; '.join(closing.reasons)}"
        if self.ends[ProofEnd.FOUND.value] >= MOST_FOUND:
            self.because = self.because or f"faults found on {MOST_FOUND} nodes: look at the check"


@workflow.defn(name=names.SWEEP_WORKFLOW)
class SweepNodes:
    """One sweep of a cluster."""

    @workflow.run
    async def run(self, cluster: str, terms: ProveTerms) -> Swept:
        """Look for candidates, prove them, and say how it went."""
        sweep = terms.proving.sweep
        if sweep is None:
            return Swept({}, "the policy sweeps nothing")
        until = workflow.now() + sweep.look
        found: Candidates = await workflow.execute_activity(
            "sweep-candidates",
            args=[cluster, sweep],
            result_type=Candidates,
            start_to_close_timeout=LOOK_LIMIT,
            schedule_to_close_timeout=sweep.look,
            retry_policy=BUDGET_RETRY,
            summary="idle nodes whose proof is old",
        )
        course = Course(until, deque(found.tasks))
        self._show(found, course)
        await asyncio.gather(*(self._prove(course, terms, found) for _ in range(found.room)))
        swept = Swept(
            dict(sorted(course.ends.items())), course.because or "nothing is left", found.due
        )
        self._show(found, course, swept.because)
        return swept

    async def _prove(self, course: Course, terms: ProveTerms, found: Candidates) -> None:
        """One after the other, as long as there are any."""
        while (task := course.next(workflow.now())) is not None:
            node = task.node
            try:
                closing: ProofClosing = await workflow.execute_child_workflow(
                    names.PROVE_WORKFLOW,
                    args=[task, terms],
                    id=names.prove_workflow_id(node.cluster, node.name, node.machine),
                    result_type=ProofClosing,
                    parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                    search_attributes=proof_attributes(task),
                    static_summary=f"{node.name}: idle, last proof is old",
                )
            except WorkflowAlreadyStartedError:
                continue  # somebody proves it already
            except ChildWorkflowError as problem:
                closing = ProofClosing(ProofEnd.UNKNOWN, (str(problem.cause),))
            course.ended(closing)
            self._show(found, course)

    def _show(self, found: Candidates, course: Course, because: str = "") -> None:
        ends = ", ".join(f"{count} {end}" for end, count in sorted(course.ends.items()))
        lines = [
            f"{found.due} nodes are due, {found.looked_at} were looked at,"
            f" {len(found.tasks)} of them idle, {found.room} at once",
            f"so far: {ends or 'none'}; {len(course.left)} left",
            *([f"ended: {because}"] if because else []),
        ]
        workflow.set_current_details("\n".join(f"- {each}" for each in lines))
