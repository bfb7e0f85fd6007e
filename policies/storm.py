"""What many sick nodes have in common: the likely cause of a storm, in words. Pure.

It names and never decides: a person reads it to tell a bad sensor from a bad fleet.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

Traits = Mapping[str, str]
"""What is known of a node that could be a cause: fault, code, driver, instance type, rack."""

MOSTLY = 75
"""Percent of the sick that must share a value for it to be named."""
MOST_NODES = 10
"""Names of nodes that a storm carries; the rest is a number."""


@dataclass(frozen=True, slots=True)
class Storm:
    """A breaker has opened. `key` names its circuit, `scope` where; `nodes` are some of the sick.

    Told at least once, and the same storm has the same scope and `since`. `over`: it passed before
    anybody could be told, and `sick`, `cause` and `nodes` are what is left of it.
    """

    key: str
    scope: str
    since: datetime
    sick: int
    size: int
    why: str
    cause: str
    nodes: tuple[str, ...]
    over: bool = False


def common_cause(sick: Sequence[Traits], well: Sequence[Traits]) -> str:
    """Values that most of the sick share, the ones that fewest of the well share first.

    `driver 580.1 (4 of 4 sick, 0 of 6 well); fault gpu-lost (4 of 4 sick)`; empty where nothing
    is shared.
    """
    found = [each for name in _names(sick) if (each := _shared(name, sick, well))]
    return "; ".join(text for _, text in sorted(found))


def _shared(name: str, sick: Sequence[Traits], well: Sequence[Traits]) -> tuple[int, str] | None:
    values = Counter(each[name] for each in sick if each.get(name))
    value, count = values.most_common(1)[0]
    if count * 100 < MOSTLY * len(sick):
        return None
    told = sum(1 for each in well if each.get(name))
    same = sum(1 for each in well if each.get(name) == value)
    contrast = f", {same} of {len(well)} well" if told else ""
    share = same * 100 // len(well) if well else 0
    return share, f"{name} {value} ({count} of {len(sick)} sick{contrast})"


def _names(sick: Iterable[Traits]) -> list[str]:
    return list(dict.fromkeys(name for each in sick for name in each if each[name]))
