"""A ledger as one small piece of text, for a run that goes on as the next.

Ten thousand asks are four megabytes of JSON, and a payload may have two. They are written by
columns, and each moment at which the ledger noted some of them once: everybody waits while a run
goes on as the next, and in a storm it does so often. What is in it is shown by the run's card and
by the query `ledger`.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import TypeAdapter

from policies.columns import Columns, by_columns, by_rows
from policies.ledger import Lease, Ledger, WithPeople

NEVER = -1
"""In `_Document.asked` and `heard`: at no moment."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What a run of the budget starts with; counts are for people. Without text: a new ledger."""

    leases: int = 0
    waiting: int = 0
    frozen: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Document:
    """A ledger by columns. `asks` are first those that wait, then those of leases, then of people's
    nodes; `rest` is the ledger without them. `asked` and `heard` are places in `moments`.
    """

    asks: Columns
    moments: list[datetime]
    asked: list[int]
    heard: list[int]
    granted: list[datetime]
    lease_looked: list[datetime]
    told: list[bool]
    given: list[datetime]
    given_looked: list[datetime]
    rest: Ledger


_DOCUMENT = TypeAdapter(_Document)


def pack(ledger: Ledger) -> Archive:
    """The ledger for the next run."""
    leases, people = ledger.leases, ledger.with_people
    asks = [*ledger.waiting, *(each.ask for each in leases), *(each.ask for each in people)]
    moments: dict[datetime, int] = {}
    document = _Document(
        asks=by_columns(asks),
        asked=_places(moments, [each.asked for each in asks]),
        heard=_places(moments, [each.heard for each in asks]),
        moments=list(moments),
        granted=[each.granted for each in leases],
        lease_looked=[each.looked for each in leases],
        told=[each.told for each in leases],
        given=[each.since for each in people],
        given_looked=[each.looked for each in people],
        rest=replace(ledger, waiting=(), leases=(), with_people=()),
    )
    packed = base64.b64encode(zlib.compress(_DOCUMENT.dump_json(document), 1)).decode()
    return Archive(len(leases), len(ledger.waiting), ledger.freeze is not None, packed)


def unpack(archive: Archive) -> Ledger:
    """The ledger of the run before; raises ValueError for a text that is none."""
    if not archive.text:
        return Ledger()
    try:
        document = _DOCUMENT.validate_json(zlib.decompress(base64.b64decode(archive.text)))
        return _ledger(document)
    except (zlib.error, IndexError) as problem:
        raise ValueError(f"this is no packed ledger: {problem}") from problem


def _ledger(document: _Document) -> Ledger:
    if not len(document.asks.incident) == len(document.asked) == len(document.heard):
        raise ValueError("this is no packed ledger: its columns differ in length")
    noted: list[datetime | None] = [*document.moments, None]
    asks = by_rows(
        document.asks,
        map(noted.__getitem__, document.asked),
        map(noted.__getitem__, document.heard),
    )
    lent, given = len(document.granted), len(document.given)
    waits = len(asks) - lent - given
    leases = (asks[waits : waits + lent], document.granted, document.lease_looked, document.told)
    people = (asks[waits + lent :], document.given, document.given_looked)
    return replace(
        document.rest,
        waiting=tuple(asks[:waits]),
        leases=tuple(map(Lease, *leases)),
        with_people=tuple(map(WithPeople, *people)),
    )


def _places(moments: dict[datetime, int], noted: Sequence[datetime | None]) -> list[int]:
    """Where in the moments each is; new ones are added."""
    return [NEVER if each is None else moments.setdefault(each, len(moments)) for each in noted]
