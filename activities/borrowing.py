"""What a call to the disruption budget came to, for all who borrow: incidents and sweeps."""

from collections.abc import Awaitable

from activities.conduct import WORKS_LATER
from fleet.errors import Refused
from fleet.outcome import Outcome, OutcomeKind


async def outcome_of(call: Awaitable[Outcome]) -> Outcome:
    """Its outcome. TRANSIENT `unreachable` where a later try may do, PERMANENT after a no."""
    try:
        return await call
    except WORKS_LATER as problem:
        return Outcome(OutcomeKind.TRANSIENT, "unreachable", str(problem))
    except Refused as problem:
        return Outcome(OutcomeKind.PERMANENT, problem.reason, str(problem))
