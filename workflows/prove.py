"""The workflow that proves one node: a lease and the taint where it was in service, the checks, and
the taint off, or left with the reason.

Id `prove/<cluster>/<name>/<machine>`; started by the watcher for a node that carries the taint, and
by a sweep. Whatever ends it early leaves the taint on the node, where the watcher sees it and
begins anew: nothing is remembered here that is not on the Node.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError

from workflows.performing import SUMMARY_LIMIT
from workflows.timing import PROOF, PROOF_WAIT, SLACK

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.figure import PROOF_SECONDS, PROOFS
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.proof import Why
    from fleet.proving import OPERATIONS, ProofClosing, ProofEnd, ProveRequest, ProveTask
    from fleet.reason import EXHAUSTED, FAULT_STANDS, INTERRUPTED
    from policies.lease_terms import LeaseTerms
    from policies.prove_terms import ProveTerms
    from policies.proving import ENDS, Next, after
    from policies.rehearsal import DRY_RUN

CHANGE_LIMIT = timedelta(minutes=5)
"""For a step that only changes the node and looks at it."""


@workflow.defn(name=names.PROVE_WORKFLOW)
class ProveNode:
    """One node, from being seen to need a proof to the end of it."""

    @workflow.init
    def __init__(self, task: ProveTask, terms: ProveTerms) -> None:
        self._task = task
        self._terms = terms
        self._asked = 0
        self._lines: list[str] = []

    @workflow.run
    async def run(self, task: ProveTask, terms: ProveTerms) -> ProofClosing:
        """Prove it; the lease of a sweep is given back however that ends."""
        began = workflow.now()
        self._show(f"why: {_WHY[task.why]}")
        closing = await (self._swept() if task.why is Why.SWEEP else self._proven())
        self._show(
            f"end: **{closing.end.value}**{''.join(f'; {each}' for each in closing.reasons)}"
        )
        _count(closing.end, (workflow.now() - began).total_seconds())
        return closing

    @workflow.signal(name=names.SIGNAL_GRANT, description="The disruption budget says yes")
    def grant(self) -> None:
        """Too late: an ask that had to wait was taken back."""

    async def _swept(self) -> ProofClosing:
        """A node in service: nothing is done to it without a lease, and nothing in dry run."""
        if self._terms.dry_run:
            why = Outcome(OutcomeKind.CANCELLED, DRY_RUN, "dry run: nothing is swept")
            return await self._closed(ProofEnd.STOPPED, why)
        lent = await self._step("prove-lease", "ask the disruption budget", self._lease_terms())
        try:
            if lent.kind is not OutcomeKind.SUCCEEDED:
                return await self._closed(ProofEnd.NO_ROOM, lent)
            taken = await self._step("prove-taint", "keep new work off, look whether some came")
            if taken.kind is not OutcomeKind.SUCCEEDED:
                return await self._closed(ProofEnd.STOPPED, taken)
            return await self._proven()
        finally:
            await self._step("prove-give-back", "give the lease back")

    async def _proven(self) -> ProofClosing:
        proving = self._terms.proving
        for left in reversed(range(proving.tries)):
            outcome = await self._step("prove", f"checks: {', '.join(proving.checks)}")
            what = after(outcome)
            if what is Next.PROVEN:
                outcome, what = await self._take_off(outcome)
                if what is Next.PROVEN:
                    return ProofClosing(ProofEnd.PROVEN, _reasons(outcome))
            if what is not Next.AGAIN or not left:
                return await self._closed(ENDS[what], outcome)
            self._show(f"could not tell: {outcome.detail}; again in {proving.pause}")
            try:
                await workflow.sleep(
                    proving.pause, summary="could not tell; tried again after this"
                )
            except asyncio.CancelledError:  # said once, by a person; what we did is undone first
                return await self._closed(ProofEnd.STOPPED, CALLED_OFF)
        raise AssertionError("a proof has at least one try")

    async def _take_off(self, passed: Outcome) -> tuple[Outcome, Next]:
        """The agent has to agree; where its conditions accuse the node, that is a fault found."""
        ended = await self._end(ProofEnd.PROVEN)
        if ended.kind is OutcomeKind.SUCCEEDED:
            return passed, Next.PROVEN
        if ended.reason == FAULT_STANDS:
            return ended, Next.FOUND
        return ended, after(ended)

    async def _closed(self, end: ProofEnd, outcome: Outcome) -> ProofClosing:
        await self._end(end)
        return ProofClosing(end, _reasons(outcome))

    async def _end(self, end: ProofEnd) -> Outcome:
        return await self._step("prove-end", f"the proof ends: {end.value}", end=end)

    async def _step(
        self, name: str, why: str, *more: Any, end: ProofEnd = ProofEnd.UNKNOWN
    ) -> Outcome:
        """One activity to its outcome; one that did not come to an end could not tell."""
        timing = PROOF[name]
        request = self._request(name == "prove", end)
        whole = request.deadline - request.since + SLACK
        try:
            outcome: Outcome = await workflow.execute_activity(
                name,
                args=[request, *more],
                result_type=Outcome,
                task_queue=_queue_of(name),
                start_to_close_timeout=min(whole, timing.at_most),
                schedule_to_close_timeout=whole + PROOF_WAIT,
                heartbeat_timeout=timing.heartbeat,
                retry_policy=timing.retry,
                summary=why.encode()[:SUMMARY_LIMIT].decode(errors="ignore"),
            )
        except ActivityError as failure:
            outcome = Outcome(OutcomeKind.TRANSIENT, EXHAUSTED, f"{name}: {failure.cause}")
            if isinstance(failure.cause, CancelledError):
                outcome = CALLED_OFF
        except asyncio.CancelledError:  # it came together with the end of the activity
            outcome = CALLED_OFF
        self._show(
            f"{name}: {outcome.kind.value}" + (f" ({outcome.reason})" * bool(outcome.reason))
        )
        return outcome

    def _request(self, runs_checks: bool, end: ProofEnd) -> ProveRequest:
        self._asked += 1
        run = workflow.info().run_id.replace("-", "")[:8]
        limit = self._terms.proving.limit if runs_checks else CHANGE_LIMIT
        return ProveRequest(
            operation=f"{OPERATIONS}{self._task.node.machine}-{run}-{self._asked}",
            task=self._task,
            since=workflow.now(),
            deadline=workflow.now() + limit,
            checks=tuple(self._terms.proving.checks),
            end=end,
            harmless=self._terms.harmless,
        )

    def _lease_terms(self) -> LeaseTerms:
        return self._terms.lease(workflow.now())

    def _show(self, line: str) -> None:
        """The card: what was asked and what came of it, a line each; bounded by the tries."""
        self._lines.append(f"- {line}")
        node = self._task.node
        head = f"**{node.name}** (machine {node.machine}): a proof that it is well"
        workflow.set_current_details("\n".join([head, "", *self._lines]))


CALLED_OFF = Outcome(OutcomeKind.CANCELLED, INTERRUPTED, "the proof was cancelled")
_WHY = {
    Why.JOINED: "it carries the taint gpumend.io/unproven",
    Why.SWEEP: "it is idle, and its last proof is old",
    Why.FOUND: "an earlier look found a fault",
}
_ON_BUDGET = ("prove-lease", "prove-give-back")


def _queue_of(name: str) -> str:
    queue = workflow.info().task_queue
    return f"{queue}{names.BUDGET_SUFFIX}" if name in _ON_BUDGET else queue


def _reasons(outcome: Outcome) -> tuple[str, ...]:
    said = outcome.detail or outcome.reason
    return (said,) if said else ()


def _count(end: ProofEnd, seconds: float) -> None:
    meter = workflow.metric_meter()
    meter.create_counter(PROOFS.name, PROOFS.text).add(1, {"end": end.value})
    histogram = meter.create_histogram_float(PROOF_SECONDS.name, PROOF_SECONDS.text)
    histogram.record(max(0.0, seconds), {"end": end.value})
