"""Counters as what they rose by: since the last round, and surviving their own resets.

A lifetime count accuses nobody; what rose just now does. Pure: `at` is in seconds of a clock that
only goes forward.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

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


def parse_count(text: str) -> int | None:
    """A counter as sysfs and tools print it; None for what is none."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 21 else None


Seen = tuple[float, int]
"""Since when a thing is seen (seconds), and in how many rounds without a break."""
Thing = TypeVar("Thing", bound=Hashable)


def seen_again(before: Mapping[Thing, Seen], now: Iterable[Thing], at: float) -> dict[Thing, Seen]:
    """What is seen now, counted on; what is not seen now begins anew."""
    known = ((each, before.get(each, (at, 0))) for each in now)
    return {each: (first, rounds + 1) for each, (first, rounds) in known}


def lasting(seen: Mapping[Thing, Seen], at: float, rounds: int, seconds: float) -> list[Thing]:
    """What was seen in so many rounds without a break, for so many seconds."""
    return [
        each for each, (first, count) in seen.items() if count >= rounds and at - first >= seconds
    ]


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
