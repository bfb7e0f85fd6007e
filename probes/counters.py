"""Counters as what they rose by: since the last round, and surviving their own resets.

A lifetime count accuses nobody; what rose just now does. Pure: `at` is in seconds of a clock that
only goes forward.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

SLOTS = 8_192
"""Counters remembered; more than any node has (8 GPUs, 36 links each, 12 counters)."""


@dataclass(frozen=True, slots=True)
class Rise:
    """By how much a counter rose, in how many seconds."""

    amount: int
    seconds: float

    @property
    def per_minute(self) -> float:
        """As a rate."""
        return self.amount * 60.0 / self.seconds

    def __str__(self) -> str:
        return f"rose by {self.amount} in {self.seconds:.0f} s"


@dataclass(slots=True)
class Counters:
    """What each counter said last."""

    _last: dict[Hashable, tuple[int, float]] = field(default_factory=dict)

    def rise(self, key: Hashable, value: int, at: float) -> Rise | None:
        """By how much it rose since it was last read; None the first time, or in no time at all.

        One that runs backwards was reset in between: what it says now came after that.
        """
        known = self._last.get(key)
        if known is not None and at <= known[1]:
            return None
        if known is not None or len(self._last) < SLOTS:
            self._last[key] = (value, at)
        if known is None:
            return None
        before, then = known
        return Rise(value - before if value >= before else value, at - then)
