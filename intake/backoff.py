"""How long to wait before trying again: doubling, bounded, jittered, and never below a hint."""

from collections.abc import Callable

Dice = Callable[[], float]
"""A number in [0, 1), injected: `random.random`, or a constant in tests."""


class Backoff:
    """Waits in seconds, from `first`, doubling up to `limit`; half of each is left to the dice."""

    def __init__(self, first: float, limit: float, dice: Dice) -> None:
        self._first = first
        self._limit = limit
        self._dice = dice
        self._next = first

    def next(self, hint: float | None = None) -> float:
        """The next wait; a server's `Retry-After` raises it, but not above the limit."""
        wait = self._next * (0.5 + self._dice() / 2)
        self._next = min(self._next * 2, self._limit)
        return min(max(wait, hint or 0.0), self._limit)

    def reset(self) -> None:
        """It works again: the next failure begins at the first wait."""
        self._next = self._first
