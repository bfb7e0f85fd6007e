"""A step as a Temporal activity: its time-outs, how it is stopped, and what its failure means."""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, FailureError

from workflows.timing import AT_ONCE, AT_ONCE_RETRY, QUEUE_WAIT, SLACK, TIMING

with workflow.unsafe.imports_passed_through():
    from fleet.decision import Act
    from fleet.names import BUDGET_SUFFIX
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.reason import EXHAUSTED, INTERRUPTED
    from fleet.step import REPAIRS, Step

SUMMARY_LIMIT = 200
"""Bytes that the server takes."""


BESIDE = (Step.HOLD, Step.RECALL, Step.IDLE)
"""Steps of a call or two that are tried at once, beside the decision for them.

A worker that dies before it has said so forgets such a step, and the facts may then lead elsewhere.
So these are only what reads, and the first hold, which whoever comes next finds done: a hold that
is forgotten after a release would be met by a close that takes the node for released. Nothing here
lends, disrupts or gives a node back. Nor does it close: what the watcher sees of a close it tells
at once, the server refuses a run that ends while something is told, and with it whatever order was
answered in the same workflow task.
"""


async def perform(
    act: Act, more: Sequence[Any], stop: Callable[[], bool], released: bool
) -> Outcome:
    """Run a step to its outcome; `more` are arguments besides the request.

    `released`: the incident gave the node back to service before, whatever came since.
    """
    step = act.request.step
    beside = step in BESIDE and not (released and step is Step.HOLD)
    done = await _at_once(act) if beside else None
    return done or await _by_activity(act, more, stop)


async def _at_once(act: Act) -> Outcome | None:
    """Beside the decision, as a local activity: one try; None where it came to no outcome."""
    try:
        outcome: Outcome = await workflow.execute_local_activity(
            act.request.step.value,
            args=[act.request],
            result_type=Outcome,
            start_to_close_timeout=AT_ONCE,
            retry_policy=AT_ONCE_RETRY,
            summary=summary_of(act),
        )
    except FailureError:  # the API server is away, or slow: an activity has the time to wait
        return None
    return outcome


async def _by_activity(act: Act, more: Sequence[Any], stop: Callable[[], bool]) -> Outcome:
    """When `stop()` turns true the activity is cancelled and its word awaited: what it did is known
    to it alone.
    """
    request, timing = act.request, TIMING[act.request.step]
    whole = max(request.deadline - workflow.now(), SLACK) + SLACK
    running = workflow.start_activity(
        request.step.value,
        args=[request, *more],
        result_type=Outcome,
        task_queue=_queue_of(request.step),
        start_to_close_timeout=min(whole, timing.at_most),
        schedule_to_close_timeout=whole + QUEUE_WAIT,
        heartbeat_timeout=timing.heartbeat,
        retry_policy=timing.retry,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=summary_of(act),
    )
    await workflow.wait_condition(lambda: running.done() or stop())
    if not running.done():
        running.cancel()
    try:
        outcome: Outcome = await running
    except ActivityError as failure:
        return outcome_of(request.step, failure)
    return outcome


def _queue_of(step: Step) -> str:
    """Asks of the budget have a queue of their own, served by few processes."""
    queue = workflow.info().task_queue
    return f"{queue}{BUDGET_SUFFIX}" if step in (Step.LEASE, Step.GIVE_BACK) else queue


def summary_of(act: Act) -> str:
    """What the timeline shows of a step."""
    text = "; ".join(act.reasons)
    return text.encode()[:SUMMARY_LIMIT].decode(errors="ignore")


def outcome_of(step: Step, failure: ActivityError) -> Outcome:
    """What a failed activity means. A repair that did not say how it ended may have happened."""
    cause = failure.cause
    looked_for = (*REPAIRS, Step.LAUNCH)
    if isinstance(cause, CancelledError) and step not in looked_for:
        return Outcome(OutcomeKind.CANCELLED, INTERRUPTED)
    detail = f"{step} did not come to an end: {cause or failure}"
    if step in looked_for:
        return Outcome(OutcomeKind.AMBIGUOUS, EXHAUSTED, detail)
    if isinstance(cause, ApplicationError) and cause.non_retryable:
        return Outcome(OutcomeKind.PERMANENT, cause.type or "", detail)
    return Outcome(OutcomeKind.TRANSIENT, EXHAUSTED, detail)
