"""What remains of an incident when it is over: the result of its workflow."""

from dataclasses import dataclass

from fleet.incident import End
from fleet.outcome import PastAttempt


@dataclass(frozen=True, slots=True)
class Closing:
    """How it ended and why, and the repairs that later incidents of this machine must remember.

    In a `dry` run nothing was repaired, and nothing is to be remembered.
    """

    end: End
    reasons: tuple[str, ...] = ()
    repairs: tuple[PastAttempt, ...] = ()
    dry: bool = False
