"""The workflow that proves one node: a lease and the taint where it was in service, the checks, and
the taint off, or left with the reason.

Id `prove/<cluster>/<name>/<machine>`; started by the watcher for a node that carries the taint, and
by a sweep. Whatever ends it early leaves the taint on the node, where the watcher sees it and
begins anew: nothing is remembered here that is not on the Node.
"""

import asyncio

from temporalio import workflow

from workflows.proof_steps import CALLED_OFF, ProofSteps, reasons

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.proof import Why
    from fleet.proving import ProofClosing, ProofEnd, ProveTask
    from fleet.reason import FAULT_STANDS, INTERRUPTED
    from policies.prove_terms import ProveTerms
    from policies.proving import after
    from policies.rehearsal import DRY_RUN


@workflow.defn(name=names.PROVE_WORKFLOW)
class ProveNode:
    """One node, from being seen to need a proof to the end of it."""

    @workflow.init
    def __init__(self, task: ProveTask, terms: ProveTerms) -> None:
        self._task = task
        self._terms = terms
        self._steps = ProofSteps(task, terms, "a proof that it is well")

    @workflow.run
    async def run(self, task: ProveTask, terms: ProveTerms) -> ProofClosing:
        """Prove it; the lease of a sweep is given back however that ends."""
        began = workflow.now()
        self._steps.show(f"why: {_WHY[task.why]}")
        closing = await self._to_its_end(task.why)
        self._steps.show_end(closing, (workflow.now() - began).total_seconds())
        return closing

    @workflow.signal(name=names.SIGNAL_GRANT, description="The disruption budget says yes")
    def grant(self) -> None:
        """Too late: an ask that had to wait was taken back."""

    async def _to_its_end(self, why: Why) -> ProofClosing:
        if why is Why.SWEEP:
            return await self._swept()
        if why is Why.PAIRS:  # whoever kept it for a trial is gone, else this were its run
            return await self._steps.closed(ProofEnd.STOPPED, _TRIAL_IS_OVER)
        return await self._proven()

    async def _swept(self) -> ProofClosing:
        """A node in service: nothing is done to it without a lease, and nothing in dry run."""
        steps = self._steps
        if self._terms.dry_run:
            why = Outcome(OutcomeKind.CANCELLED, DRY_RUN, "dry run: nothing is swept")
            return await steps.closed(ProofEnd.STOPPED, why)
        lent = await steps.lease()
        try:
            if lent.kind is not OutcomeKind.SUCCEEDED:
                return await steps.closed(ProofEnd.NO_ROOM, lent)
            taken = await steps.do("prove-taint", "keep new work off, look whether some came")
            if taken.kind is not OutcomeKind.SUCCEEDED:
                return await steps.closed(ProofEnd.STOPPED, taken)
            return await self._proven()
        finally:
            await steps.do("prove-give-back", "give the lease back")

    async def _proven(self) -> ProofClosing:
        proving, steps = self._terms.proving, self._steps
        said = f"checks: {', '.join(proving.checks)}"
        for left in reversed(range(proving.tries)):
            outcome = await steps.do("prove", said, checks=tuple(proving.checks))
            end = after(outcome)
            if end is ProofEnd.PROVEN:
                outcome, end = await self._take_off(outcome)
                if end is ProofEnd.PROVEN:
                    return ProofClosing(ProofEnd.PROVEN, reasons(outcome))
            if end is not ProofEnd.UNKNOWN or not left:
                return await steps.closed(end, outcome)
            steps.show(f"could not tell: {outcome.detail}; again in {proving.pause}")
            try:
                await workflow.sleep(
                    proving.pause, summary="could not tell; tried again after this"
                )
            except asyncio.CancelledError:  # said once, by a person; what we did is undone first
                return await steps.closed(ProofEnd.STOPPED, CALLED_OFF)
        raise AssertionError("a proof has at least one try")

    async def _take_off(self, passed: Outcome) -> tuple[Outcome, ProofEnd]:
        """The agent has to agree; where its conditions accuse the node, that is a fault found."""
        ended = await self._steps.end(ProofEnd.PROVEN)
        if ended.kind is OutcomeKind.SUCCEEDED:
            return passed, ProofEnd.PROVEN
        if ended.reason == FAULT_STANDS:
            return ended, ProofEnd.FOUND
        return ended, after(ended)


_WHY = {
    Why.JOINED: "it carries the taint gpumend.io/unproven",
    Why.SWEEP: "it is idle, and its last proof is old",
    Why.FOUND: "an earlier look found a fault",
    Why.PAIRS: "a trial in pairs left its taint",
    Why.ODD: "a trial in pairs found it odd",
}
_TRIAL_IS_OVER = Outcome(
    OutcomeKind.CANCELLED, INTERRUPTED, "the trial in pairs that it was kept for is over"
)
