"""How every activity runs: it tells how far it is, can be stopped, and ends in a typed Outcome.

The noes of the world are Outcomes. Only what may work later is raised, for Temporal to repeat, and
repeating is safe since every step looks before it acts. What a step does is not here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.endings import REFUSED, ended
from fleet.errors import Ambiguous, Conflict, Expired, Refused, TooManyRequests, Transient
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import INTERRUPTED

HEARTBEAT_SECONDS = 10.0
"""A cancel arrives with a heartbeat; every wait within a step has a limit of its own."""

WORKS_LATER = (Transient, Ambiguous, TooManyRequests, Expired, Conflict)
"""What a later try, which reads and looks again, may find otherwise."""


class Progress:
    """What a running step says of itself; goes with every heartbeat."""

    def __init__(self) -> None:
        self.words = ""
        self.acted = False
        """True once the step did what cannot be taken back: interrupted now, it is ambiguous."""

    def say(self, words: str) -> None:
        """Tell how far the step is."""
        self.words = words
        _heartbeat(words)


async def conduct(work: Callable[[Progress], Awaitable[Outcome]]) -> Outcome:
    """Run a step to its Outcome.

    Raises ApplicationError (retryable) for what may work later, and CancelledError where the
    worker, not the workflow, wants to stop: then another worker goes on from what the cluster says.
    """
    progress = Progress()
    beat = asyncio.create_task(_beat(progress))
    try:
        return await work(progress)
    except asyncio.CancelledError:
        if not _stopped_on_purpose():
            raise
        kind = OutcomeKind.AMBIGUOUS if progress.acted else OutcomeKind.CANCELLED
        return ended(kind, INTERRUPTED, progress.words)
    except WORKS_LATER as problem:
        raise _later(problem, getattr(problem, "retry_after", None)) from problem
    except Refused as problem:
        return ended(OutcomeKind.PERMANENT, REFUSED, str(problem))
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)


async def _beat(progress: Progress) -> None:
    while True:
        _heartbeat(progress.words)
        await asyncio.sleep(HEARTBEAT_SECONDS)


def _heartbeat(words: str) -> None:
    """A local activity has none: it is over, or given up, before one would be due."""
    if not activity.info().is_local:
        activity.heartbeat(words)


def _stopped_on_purpose() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _later(problem: Exception, seconds: float | None) -> ApplicationError:
    delay = timedelta(seconds=seconds) if seconds else None
    return ApplicationError(
        str(problem)[:1_000],
        type=type(problem).__name__,
        next_retry_delay=delay,
        category=ApplicationErrorCategory.BENIGN,
    )
