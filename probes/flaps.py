"""Links that go down and come back too often, over a sliding window. Pure; times are in seconds.

One flap accuses nobody, and a link may flap so slowly that no round finds two: so each is kept with
its time. A link has flapped enough when a window is full of flaps, and is well again when a whole
window was free of them. A counter that runs backwards is a new start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LIMITS: tuple[tuple[int, float], ...] = ((3, 3_600.0), (6, 86_400.0))
"""So many flaps in so many seconds are too many. Three: as gpud and NVSentinel have it, the latter
within an hour. More than five lost carriers in a day: as Azure's node checks have it; with a flap
every four hours no long job comes through."""
TIMES_KEPT = 16
"""Flaps of a link that are remembered, the latest; more say nothing new."""
LINKS_LIMIT = 512
"""Links remembered; further ones are not judged. Nobody has more than some dozen."""


@dataclass(frozen=True, slots=True)
class Link:
    """What its counter said last and when, and when it went down."""

    count: int
    at: float
    downs: tuple[float, ...] = ()


@dataclass(slots=True)
class Flaps:
    """The links of one boot by name."""

    links: dict[str, Link] = field(default_factory=dict)

    def read(self, name: str, count: int, at: float, settling: bool = False) -> str:
        """How a link flaps, by how often it ever went down; empty where it is well.

        While it is `settling` what it does is no flap. When flaps came that nobody saw come is
        not known: they are spread evenly over the time since it was last read.
        """
        before = self.links.get(name)
        if before is None or count < before.count or at <= before.at:
            downs: tuple[float, ...] = ()
            if before is not None and at <= before.at:
                return too_many(before.downs, before.at)
        else:
            new = 0 if settling else count - before.count
            downs = (*before.downs, *_spread(new, before.at, at))[-TIMES_KEPT:]
        if before is not None or len(self.links) < LINKS_LIMIT:
            self.links[name] = Link(count, at, downs)
        return too_many(downs, at)

    def fields(self) -> dict[str, Any]:
        """As the state directory keeps them."""
        return {name: [each.count, each.at, *each.downs] for name, each in dict(self.links).items()}


def read_flaps(fields: Mapping[str, Any]) -> Flaps:
    """Read them back; raises LookupError, TypeError or ValueError for what are none."""
    links = {}
    for name, (count, at, *downs) in fields.items():
        links[str(name)] = Link(int(count), float(at), tuple(float(each) for each in downs))
    return Flaps(links)


def too_many(downs: Sequence[float], at: float) -> str:
    """In words, what of `LIMITS` a link that went down then has passed; empty for none."""
    for many, window in LIMITS:
        if count := _bout(downs, at, many, window):
            return f"went down {count} times, {many} within {window / 3_600:.0f} h"
    return ""


def _bout(downs: Sequence[float], at: float, many: int, window: float) -> int:
    """Flaps since the last window that was free of them, if some window since then was full."""
    bout: list[float] = []
    full = False
    for down in downs:
        if bout and down - bout[-1] >= window:
            bout, full = [], False
        bout.append(down)
        full = full or len([each for each in bout if down - each < window]) >= many
    over = not bout or at - bout[-1] >= window
    return 0 if over or not full else len(bout)


def _spread(count: int, since: float, until: float) -> list[float]:
    """Only the latest, where there are more than anybody keeps."""
    first = max(0, count - TIMES_KEPT)
    return [since + (until - since) * (each + 1) / count for each in range(first, count)]
