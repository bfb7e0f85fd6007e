"""One batch between a process and the budget: asks and give-backs in, what is granted out.

A batch travels by columns, and its answer in the order of the batch: most asks of a storm are
stopped by the same few scopes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from policies.columns import Columns, by_columns
from policies.ledger import Ask

GRANTED = -1
"""In `SentAnswer.stops`: nothing stops this one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Many at once, since a workflow takes ten updates at a time and no more.

    `gives` are incidents that need nothing any more, `hand_offs` those whose nodes people have now.
    """

    asks: tuple[Ask, ...] = ()
    gives: tuple[str, ...] = ()
    hand_offs: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """`granted`: those of the batch's asks that hold a lease now; `why` says what stops the rest.

    `why` maps an incident to one sentence.
    """

    granted: tuple[str, ...]
    why: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch on its way."""

    asks: Columns = field(default_factory=Columns)
    gives: tuple[str, ...] = ()
    hand_offs: Columns = field(default_factory=Columns)


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An answer on its way: for each ask of the batch GRANTED, or a place in `why`."""

    granted: tuple[str, ...]
    stops: tuple[int, ...]
    why: tuple[str, ...]


def send(batch: Batch) -> SentBatch:
    """A batch for its way."""
    return SentBatch(by_columns(batch.asks), batch.gives, by_columns(batch.hand_offs))


def answer(asks: Sequence[Ask], holders: Collection[str], why: Sequence[str]) -> SentAnswer:
    """What asks are told: who holds a lease, and of each what would stop it."""
    granted = tuple([each.incident for each in asks if each.incident in holders])
    places: dict[str, int] = {}
    stops = [
        GRANTED if each.incident in holders else places.setdefault(text, len(places))
        for each, text in zip(asks, why, strict=True)
    ]
    return SentAnswer(granted, tuple(stops), tuple(places))


def read_answer(batch: Batch, sent: SentAnswer) -> Answer:
    """The answer to a batch; raises ValueError for one to another."""
    stopped = zip(batch.asks, sent.stops, strict=True)
    why = {each.incident: sent.why[place] for each, place in stopped if place != GRANTED}
    return Answer(sent.granted, why)
