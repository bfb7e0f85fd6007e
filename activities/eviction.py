"""What an answer to an eviction means, and when to ask again. Pure.

The table is `table 2.2` of the design: a PodDisruptionBudget that says no is not an overloaded
server, and neither is a Pod that is another one by now.
"""

from dataclasses import dataclass
from enum import StrEnum

from fleet.errors import Ambiguous, Conflict, NotFound, Refused, TooManyRequests, Transient

BUDGET_CAUSE = "DisruptionBudget"
NAMESPACE_CAUSE = "NamespaceTerminating"

FIRST_DELAY = 1.0
LAST_DELAY = 10.0
"""Seconds between asks that a budget refuses: doubling, since budgets free up one Pod at a time."""
SLOW_DELAY = 30.0
"""Seconds where only a person or a long operation can change the answer."""
LONGEST_HINT = 60.0
"""Seconds of a server's hint that we follow; beyond it we ask anyway, once."""


class Reaction(StrEnum):
    """What to do about the Pod."""

    ACCEPTED = "accepted"
    GONE = "gone"
    BLOCKED = "blocked"
    STUCK = "stuck"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Answer:
    """`reaction`, what to tell people, and the server's own hint in seconds."""

    reaction: Reaction
    why: str = ""
    hint: float | None = None


def read_answer(error: Exception | None) -> Answer:
    """The meaning of what an eviction raised, or of nothing raised; other errors are re-raised."""
    match error:
        case None:
            return Answer(Reaction.ACCEPTED)
        case NotFound():
            return Answer(Reaction.GONE, "no such Pod any more")
        case Conflict():
            return Answer(Reaction.GONE, "another Pod under the name")
        case TooManyRequests():
            return _refused_for_now(error)
        case Refused():
            return _refused(error)
        case Transient():
            return Answer(Reaction.AGAIN, str(error), error.retry_after)
        case Ambiguous():
            return Answer(Reaction.AGAIN, "the answer was lost")
    raise error


def delay(answer: Answer, refusals: int, jitter: float) -> float:
    """Seconds until the Pod is asked again; `refusals` so far, `jitter` in 0..1.

    Never shorter than a hint (up to LONGEST_HINT), and spread so that Pods do not ask in step.
    """
    match answer.reaction:
        case Reaction.ACCEPTED | Reaction.GONE:
            return SLOW_DELAY
        case Reaction.STUCK:
            pause = SLOW_DELAY
        case _:
            pause = min(LAST_DELAY, FIRST_DELAY * 2.0 ** min(refusals, 10))
    pause *= 0.8 + 0.4 * jitter
    return max(pause, min(answer.hint or 0.0, LONGEST_HINT))


def _refused_for_now(error: TooManyRequests) -> Answer:
    if BUDGET_CAUSE not in error.causes:
        return Answer(Reaction.AGAIN, "the API server is overloaded", error.retry_after)
    if error.retry_after:
        return Answer(Reaction.AGAIN, "its budget is being counted", error.retry_after)
    return Answer(Reaction.BLOCKED, "its disruption budget says no")


def _refused(error: Refused) -> Answer:
    if NAMESPACE_CAUSE in error.causes:
        return Answer(Reaction.AGAIN, "its namespace is being deleted", LAST_DELAY)
    return Answer(Reaction.STUCK, f"{error.code} {error.reason}: {error.message}"[:300])
