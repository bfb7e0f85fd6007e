"""Time-outs, heartbeats and retries of everything that a workflow asks for, with their reasons.

How long a step may take on the whole is its request's deadline, which is policy. Here is how soon
a worker that died is noticed, and how often a try is repeated before the ladder hears of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import RetryPolicy

from fleet.step import Step

SLACK = timedelta(minutes=2)
"""Beyond its deadline a step may still say how it ended."""

NOT_RETRYABLE = ("Refused", "NotFound", "AssertionError", "TypeError", "ValueError", "KeyError")
"""No's of the world, and our own mistakes: the same call gives the same answer."""

QUEUE_WAIT = timedelta(hours=1)
"""For a worker to take a step up; then the ladder hears that nobody did."""

HEARTBEATS_EVERY = timedelta(seconds=5)
"""How often at most a beat goes to the server, and so how soon a cancel arrives."""


@dataclass(frozen=True, slots=True)
class Timing:
    """`at_most` bounds one try; the deadline of the request bounds them all."""

    retry: RetryPolicy
    heartbeat: timedelta | None = None
    at_most: timedelta = timedelta.max


def _retry(tries: int, first: timedelta = timedelta(seconds=1)) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=first,
        backoff_coefficient=2.0,
        maximum_interval=timedelta(seconds=30),
        maximum_attempts=tries,
        non_retryable_error_types=NOT_RETRYABLE,
    )


_HEARTBEAT = timedelta(seconds=20)
"""Activities beat every ten seconds: two missed, and another worker goes on."""
_ASK = timedelta(seconds=45)
"""For what asks Temporal and does not beat: some dozens of runs to read, or one update."""

_CALL = Timing(_retry(10), _HEARTBEAT)
"""One or two calls to the API server: ten tries outlive its restart."""
_LONG = Timing(_retry(20, timedelta(seconds=2)), _HEARTBEAT)
"""Minutes to hours, resumed from what the cluster says; each try may be cut by a worker's end."""
_HARM = Timing(_retry(8, timedelta(seconds=2)), _HEARTBEAT)
"""Repeating is safe since each try looks first; a few are enough to outlive a deployment."""

TIMING: Mapping[Step, Timing] = {
    Step.HOLD: _CALL,
    Step.RECALL: Timing(_retry(5), at_most=_ASK),
    Step.LEASE: Timing(_retry(5), at_most=_ASK),
    Step.GIVE_BACK: Timing(_retry(5), at_most=_ASK),
    Step.IDLE: _CALL,
    Step.DRAIN: _LONG,
    Step.END_JOB: _LONG,
    Step.RESET_GPU: _HARM,
    Step.REBOOT: _HARM,
    Step.LAUNCH: _LONG,
    Step.REPLACE: _LONG,
    Step.VERIFY: _LONG,
    Step.RELEASE: _CALL,
    Step.CLOSE: _CALL,
}

PROOF: Mapping[str, Timing] = {
    "prove-lease": Timing(_retry(3), at_most=_ASK),
    "prove-give-back": Timing(_retry(10), at_most=_ASK),
    "prove-taint": _CALL,
    "prove": _LONG,
    "pair": _LONG,
    "prove-end": Timing(_retry(0), _HEARTBEAT),
}
"""The steps of a proof. The last one is tried as long as its time lasts: a taint hangs on it."""
PROOF_WAIT = timedelta(hours=1)
"""For a worker to take a step up, as for those of the ladder."""

CHANGE_LIMIT = timedelta(minutes=5)
"""For a step of a proof that only changes the node and looks at it."""
TRIAL_LIMIT = timedelta(hours=6)
"""How long a node is kept for a trial in pairs at most, whatever became of that."""
PAIR_START = timedelta(minutes=5)
"""For the two Pods of a pair to start and meet; adding up is policy."""

TELL_TRY = timedelta(minutes=3)
"""For one try to tell people: the notifier may gather many tellings into one digest first."""
TELL_HEARTBEAT = timedelta(seconds=30)
TELL_WHOLE = timedelta(hours=6)
"""A receiver that is dead for longer is told of by the log and by metrics."""
TELL_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=5),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(minutes=15),
    non_retryable_error_types=NOT_RETRYABLE,
)

AT_ONCE = timedelta(seconds=5)
"""For the one try of a step beside its decision: half of what a workflow task may take."""
AT_ONCE_RETRY = RetryPolicy(maximum_attempts=1)

DECIDE_TIMEOUT = timedelta(seconds=10)
"""It takes less than a millisecond; a starved machine is given time."""
DECIDE_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=3)
"""Three failures are a fault of the engine, and a hand-off."""

BUDGET_CALL = timedelta(seconds=60)
"""For the budget's own activities: some hundreds of signals or look-ups."""
BUDGET_RETRY = _retry(3)
"""What fails three times is done at the next look."""
