"""Asks by columns: how thousands of them travel, in a batch to the budget or to its next run.

The nodes of a rack claim the same, so each set of claims is written once. A third of the text, and
a sixth of the time to read it, of a list of asks. Where they are asked, kept and granted they are
rows: `policies.ledger`.
"""

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat

from policies.ledger import Ask, Claim, reach_of


@dataclass(frozen=True, slots=True)
class Reach:
    """What an ask concerns besides its node: the scopes it claims, and those it is only within."""

    claims: tuple[Claim, ...]
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Asks by columns; `place` says of each which of `reaches` is its.

    Raises ValueError where columns differ in length or a place is none.
    """

    incident: list[str] = field(default_factory=list)
    node: list[str] = field(default_factory=list)
    since: list[datetime] = field(default_factory=list)
    patience: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    reaches: list[Reach] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns: list[Sized] = [self.incident, self.node, self.since, self.patience, self.place]
        if len({len(each) for each in columns}) > 1:
            raise ValueError("the columns of these asks differ in length")
        if self.place and not 0 <= min(self.place) <= max(self.place) < len(self.reaches):
            raise ValueError("an ask has a place that is none of its reaches")


def by_columns(asks: Sequence[Ask]) -> Columns:
    """The asks, without what the ledger itself noted of them."""
    reaches: dict[Reach, int] = {}
    known: dict[tuple[int, int], int] = {}
    place = []
    for each in asks:
        same = reach_of(each)
        if same not in known:
            known[same] = reaches.setdefault(Reach(each.claims, each.within), len(reaches))
        place.append(known[same])
    return Columns(
        incident=[each.incident for each in asks],
        node=[each.node for each in asks],
        since=[each.since for each in asks],
        patience=[each.patience for each in asks],
        place=place,
        reaches=list(reaches),
    )


Noted = Iterable[datetime | None]
_NEVER: Noted = repeat(None)


def by_rows(columns: Columns, asked: Noted = _NEVER, heard: Noted = _NEVER) -> list[Ask]:
    """The asks again, with what the ledger had noted."""
    claims = [each.claims for each in columns.reaches]
    within = [each.within for each in columns.reaches]
    return list(
        map(
            Ask,
            columns.incident,
            columns.node,
            map(claims.__getitem__, columns.place),
            columns.since,
            columns.patience,
            map(within.__getitem__, columns.place),
            asked,
            heard,
        )
    )
