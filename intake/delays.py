"""How long something took, counted in classes, so that no single time is kept."""

from bisect import bisect_left
from dataclasses import dataclass, field

CLASSES = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0)
"""Seconds, each the most of its class; the last class has no end."""


@dataclass(slots=True)
class Delays:
    """`counts` has one number a class and one for all that is longer."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(CLASSES) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """One more; a clock that is behind counts as no time at all."""
        spent = max(0.0, seconds)
        self.counts[bisect_left(CLASSES, spent)] += 1
        self.total += spent

    def cumulative(self) -> list[tuple[str, float]]:
        """Upper bound as text and how many took no longer, as Prometheus wants them."""
        bounds = [*(f"{each:g}" for each in CLASSES), "+Inf"]
        sums = [float(sum(self.counts[: n + 1])) for n in range(len(self.counts))]
        return list(zip(bounds, sums, strict=True))
