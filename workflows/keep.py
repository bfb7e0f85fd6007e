"""The workflow that keeps one idle node for a trial in pairs: its lease and its taint, from before
the trial to what came of it.

Id `prove/<cluster>/<name>/<machine>`, so no proof runs beside it; a child of the trial. The trial
says by a signal what the node is to be told. Where no word comes any more, the node serves again:
the trial was cancelled, or its time is over.
"""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.proof_steps import CALLED_OFF, ProofSteps
from workflows.timing import TRIAL_LIMIT

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.check import PAIRS
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.proof import Why
    from fleet.proving import ProofClosing, ProofEnd, ProveTask, TrialWord
    from policies.prove_terms import ProveTerms
    from policies.proving import after


@workflow.defn(name=names.KEEP_WORKFLOW)
class KeepForPairs:
    """One node of a trial."""

    @workflow.init
    def __init__(self, task: ProveTask, terms: ProveTerms) -> None:
        self._task = task
        self._terms = terms
        self._word: TrialWord | None = None
        self._steps = ProofSteps(task, terms, "kept for a trial in pairs")

    @workflow.run
    async def run(self, task: ProveTask, terms: ProveTerms) -> ProofClosing:
        """Keep it until the trial says how it came out; the lease is given back in any case."""
        began = workflow.now()
        closing = await (self._in_service() if task.why is Why.PAIRS else self._kept())
        self._steps.show_end(closing, (workflow.now() - began).total_seconds())
        return closing

    @workflow.signal(name=names.SIGNAL_WORD, description="The trial says how this node came out")
    def word(self, word: TrialWord) -> None:
        """The first word counts."""
        self._word = self._word or word

    @workflow.signal(name=names.SIGNAL_GRANT, description="The disruption budget says yes")
    def grant(self) -> None:
        """Too late: an ask that had to wait was taken back."""

    async def _in_service(self) -> ProofClosing:
        steps = self._steps
        lent = await steps.lease()
        try:
            if lent.kind is not OutcomeKind.SUCCEEDED:
                return await steps.closed(ProofEnd.NO_ROOM, lent)
            taken = await steps.do("prove-taint", "keep new work off, look whether some came")
            if taken.kind is not OutcomeKind.SUCCEEDED:
                return await steps.closed(ProofEnd.STOPPED, taken)
            return await self._kept()
        finally:
            await steps.do("prove-give-back", "give the lease back")

    async def _kept(self) -> ProofClosing:
        """Tell the trial that the node is there, and do as it says."""
        try:
            await self._say_that_it_is_there()
            await workflow.wait_condition(
                lambda: self._word is not None,
                timeout=TRIAL_LIMIT,
                timeout_summary="kept for the trial at most so long",
            )
        except asyncio.CancelledError:  # said once; what we did is undone first
            return await self._steps.closed(ProofEnd.STOPPED, CALLED_OFF)
        except (TimeoutError, FailureError):  # or the trial cannot be told any more
            return await self._steps.closed(ProofEnd.UNKNOWN, _NO_WORD)
        assert self._word
        self._steps.show(f"the trial: {self._word.because}")
        return await self._told(self._word)

    async def _told(self, word: TrialWord) -> ProofClosing:
        said = Outcome(OutcomeKind.SUCCEEDED, detail=word.because)
        if word.finding:
            return await self._odd(word)
        if word.end is not ProofEnd.PROVEN:
            return await self._steps.closed(word.end, said)
        ended = await self._steps.end(ProofEnd.PROVEN)
        if ended.kind is OutcomeKind.SUCCEEDED:
            return ProofClosing(ProofEnd.PROVEN, (word.because,))
        return await self._steps.closed(ProofEnd.UNKNOWN, ended)

    async def _odd(self, word: TrialWord) -> ProofClosing:
        """Leave the finding on the node, so that its agent tells of it; the taint stays in any
        case, unless policy holds no node for such a fault."""
        for _ in range(self._terms.proving.tries):
            left = await self._steps.do(
                "prove", "tell the node", checks=(PAIRS,), word=word.finding
            )
            end = after(left)
            if end is not ProofEnd.UNKNOWN:
                break
        if end is ProofEnd.PROVEN:
            return await self._steps.closed(ProofEnd.UNKNOWN, left)
        end = ProofEnd.STOPPED if end is ProofEnd.STOPPED else ProofEnd.FOUND
        await self._steps.end(end)
        return ProofClosing(end, (word.because, *((left.detail,) if left.detail else ())))

    async def _say_that_it_is_there(self) -> None:
        trial = workflow.info().parent
        if trial is None:
            raise ApplicationError("a node is kept for a trial, by the trial", non_retryable=True)
        handle = workflow.get_external_workflow_handle(trial.workflow_id, run_id=trial.run_id)
        await handle.signal(names.SIGNAL_READY, self._task.node.name)


_NO_WORD = Outcome(OutcomeKind.TRANSIENT, "no-word", "its trial said nothing of it")
