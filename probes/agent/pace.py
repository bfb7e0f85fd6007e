"""How often an agent may patch its Node: at once for news, at leisure for counts. Pure.

A patch of a Node goes to everybody who watches nodes, so over any longer time there is at most one
a second; but a few in a row may go out at once, or a fault would wait behind the patch of another.
Counts alone change nobody's mind: in a storm they may not use up what news will need.
"""

from dataclasses import dataclass

PATCH_PERIOD = 1.0
"""Seconds after which another patch may be sent, on the average."""
AT_ONCE = 4
"""Patches in a row, after some quiet seconds."""
COUNTS_PERIOD = 10.0
"""Seconds between two patches of counts alone."""


@dataclass(slots=True)
class Pace:
    """Leave to patch, as it grows and is spent; times are in seconds of a monotonic clock."""

    _left: float = float(AT_ONCE)
    _at: float = 0.0
    _spent: float = float("-inf")

    def wait(self, now: float, urgent: bool) -> float:
        """Seconds until a patch may go out; 0 when it may now."""
        self._grow(now)
        lacking = max(0.0, 1.0 - self._left) * PATCH_PERIOD
        return lacking if urgent else max(lacking, self._spent + COUNTS_PERIOD - now)

    def spend(self, now: float) -> None:
        """A patch was sent."""
        self._grow(now)
        self._left -= 1.0
        self._spent = now

    def _grow(self, now: float) -> None:
        self._left = min(float(AT_ONCE), self._left + max(0.0, now - self._at) / PATCH_PERIOD)
        self._at = now
