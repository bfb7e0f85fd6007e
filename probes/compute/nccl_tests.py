"""Read what `all_reduce_perf` of the NCCL tests prints, of any age: pure, and never raising.

A row ends in two groups of time, algorithm bandwidth, bus bandwidth and number of wrong values, of
which the last is `N/A` where nobody checked. What is before them differs from version to version.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

TOOL = "all_reduce_perf"
LINE_LIMIT = 2_000
_RANK = re.compile(r"#\s+Rank\s+(\d+)\b.*\bdevice\s+\d+\s+\[[^\]]*\]\s+(.+?)\s*$")
_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)")
_GROUP = 4
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Reduced:
    """What an all-reduce came to among `ranks` GPUs of one `model` (empty: of several, or untold).

    `bus` is the bus bandwidth in bytes a second, 0 where none was told; `wrong` the number of wrong
    values, None where nobody looked.
    """

    ranks: int = 0
    model: str = ""
    bus: float = 0.0
    wrong: int | None = None


def read(output: str) -> Reduced:
    """The best bandwidth at the largest size, and every wrong value."""
    models: dict[int, str] = {}
    rows: list[tuple[int, float, int | None]] = []
    wrong: list[int] = []
    for line in output.splitlines()[:LINE_LIMIT]:
        if rank := _RANK.match(line):
            models[int(rank[1][:6])] = rank[2]
        elif bounds := _BOUNDS.match(line):
            wrong.append(int(bounds[1][:12]))
        elif not line.lstrip().startswith("#"):
            rows.extend(_groups(line.split()))
    wrong += [number for _, _, number in rows if number is not None]
    largest = max((size for size, _, _ in rows), default=0)
    kinds = set(models.values())
    return Reduced(
        ranks=len(models),
        model=kinds.pop() if len(kinds) == 1 else "",
        bus=max((bus for size, bus, _ in rows if size == largest), default=0.0),
        wrong=max(wrong, default=None),
    )


def _groups(cells: list[str]) -> Iterator[tuple[int, float, int | None]]:
    """Size, bus bandwidth and wrong values of a row, once out of place and once in place."""
    if len(cells) < 2 * _GROUP + 2 or not cells[0].isascii() or not cells[0].isdigit():
        return
    for group in (cells[-2 * _GROUP : -_GROUP], cells[-_GROUP:]):
        times = [_number(each) for each in group[:3]]
        if None not in times and times[2]:
            yield int(cells[0][:18]), times[2] * _GIGA, _wrong(group[3])


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _wrong(cell: str) -> int | None:
    """A count only: older versions print the greatest error, which rounding alone makes more than
    zero, and judge it in their last lines themselves.
    """
    return int(cell[:18]) if cell.isascii() and cell.isdigit() else None
