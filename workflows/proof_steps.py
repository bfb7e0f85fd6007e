"""What the runs about one node have in common, be it proven or kept for a trial in pairs: its steps
as activities, and its card. Which step follows which is theirs.
"""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, CancelledError

from workflows.performing import SUMMARY_LIMIT
from workflows.timing import CHANGE_LIMIT, PROOF, PROOF_WAIT, SLACK

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.figure import PROOF_SECONDS, PROOFS
    from fleet.finding import Finding
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.proving import OPERATIONS, ProofClosing, ProofEnd, ProveRequest, ProveTask
    from fleet.reason import EXHAUSTED, INTERRUPTED
    from policies.lease_terms import LeaseTerms
    from policies.prove_terms import ProveTerms

CALLED_OFF = Outcome(OutcomeKind.CANCELLED, INTERRUPTED, "the proof was cancelled")
_ON_BUDGET = ("prove-lease", "prove-give-back")


class ProofSteps:
    """The steps of one run, numbered, and what the card says of them."""

    def __init__(self, task: ProveTask, terms: ProveTerms, about: str) -> None:
        self._task = task
        self._terms = terms
        self._about = about
        self._asked = 0
        self._lines: list[str] = []

    async def do(
        self,
        name: str,
        why: str,
        *more: Any,
        end: ProofEnd = ProofEnd.UNKNOWN,
        checks: tuple[str, ...] = (),
        word: Finding | None = None,
    ) -> Outcome:
        """One activity to its outcome; one that did not come to an end could not tell."""
        timing = PROOF[name]
        request = self._request(end, checks, word)
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
        self.show(
            f"{name}: {outcome.kind.value}" + (f" ({outcome.reason})" if outcome.reason else "")
        )
        return outcome

    async def lease(self) -> Outcome:
        """Ask the disruption budget: now or not at all."""
        terms: LeaseTerms = self._terms.lease(workflow.now())
        return await self.do("prove-lease", "ask the disruption budget", terms)

    async def closed(self, end: ProofEnd, outcome: Outcome) -> ProofClosing:
        """The end on the node, whatever it is, and the closing that says why."""
        await self.end(end)
        return ProofClosing(end, reasons(outcome))

    async def end(self, end: ProofEnd) -> Outcome:
        """What the node carries after this proof."""
        return await self.do("prove-end", f"the proof ends: {end.value}", end=end)

    def show(self, line: str) -> None:
        """The card: what was asked and what came of it, a line each; bounded by the tries."""
        self._lines.append(f"- {line}")
        node = self._task.node
        head = f"**{node.name}** (machine {node.machine}): {self._about}"
        workflow.set_current_details("\n".join([head, "", *self._lines]))

    def show_end(self, closing: ProofClosing, seconds: float) -> None:
        """The last line of the card, and the metrics."""
        self.show(f"end: **{closing.end.value}**{''.join(f'; {each}' for each in closing.reasons)}")
        meter = workflow.metric_meter()
        meter.create_counter(PROOFS.name, PROOFS.text).add(1, {"end": closing.end.value})
        histogram = meter.create_histogram_float(PROOF_SECONDS.name, PROOF_SECONDS.text)
        histogram.record(max(0.0, seconds), {"end": closing.end.value})

    def _request(
        self, end: ProofEnd, checks: tuple[str, ...], word: Finding | None
    ) -> ProveRequest:
        self._asked += 1
        run = workflow.info().run_id.replace("-", "")[:8]
        return ProveRequest(
            operation=f"{OPERATIONS}{self._task.node.machine}-{run}-{self._asked}",
            task=self._task,
            since=workflow.now(),
            deadline=workflow.now() + (self._terms.proving.limit if checks else CHANGE_LIMIT),
            checks=checks,
            end=end,
            harmless=self._terms.harmless,
            word=word,
        )


def reasons(outcome: Outcome) -> tuple[str, ...]:
    """Why it ended so, for the closing."""
    said = outcome.detail or outcome.reason
    return (said,) if said else ()


def _queue_of(name: str) -> str:
    queue = workflow.info().task_queue
    return f"{queue}{names.BUDGET_SUFFIX}" if name in _ON_BUDGET else queue
