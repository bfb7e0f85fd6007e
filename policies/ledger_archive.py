"""A ledger as one small piece of text, for a run that goes on as the next.

Ten thousand asks are four megabytes of JSON, and a payload may have two. They are written by
columns, and each set of claims once, since the nodes of a rack claim the same: everybody waits
while a run goes on as the next, and in a storm it does so often. What is in it is shown by the
run's card and by the query `ledger`.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import TypeAdapter

from policies.ledger import Ask, Claim, Lease, Ledger, WithPeople


@dataclass(frozen=True, slots=True)
class Archive:
    """What a run of the budget starts with; counts are for people. Without text: a new ledger."""

    leases: int = 0
    waiting: int = 0
    frozen: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Asks:
    """Asks by columns; `claims` are places in `sets`."""

    incident: list[str]
    node: list[str]
    sets: list[tuple[Claim, ...]]
    claims: list[int]
    since: list[datetime]
    patience: list[int]
    within: list[tuple[str, ...]]
    asked: list[datetime | None]
    heard: list[datetime | None]


@dataclass(frozen=True, slots=True)
class _Document:
    """A ledger by columns. `asks` are first those that wait, then those of leases, then of people's
    nodes; `rest` is the ledger without them.
    """

    asks: _Asks
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
    document = _Document(
        asks=_by_columns(asks),
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
    asks = _by_rows(document.asks)
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


def _by_columns(asks: Sequence[Ask]) -> _Asks:
    sets: dict[tuple[tuple[str, int, bool], ...], int] = {}
    known: dict[int, int] = {}
    for each in asks:
        if id(each.claims) not in known:  # equal ones are mostly the same, once unpacked
            key = tuple([(e.scope, e.maximum, e.hand_offs) for e in each.claims])
            known[id(each.claims)] = sets.setdefault(key, len(sets))
    return _Asks(
        incident=[each.incident for each in asks],
        node=[each.node for each in asks],
        sets=[tuple([Claim(*claim) for claim in key]) for key in sets],
        claims=[known[id(each.claims)] for each in asks],
        since=[each.since for each in asks],
        patience=[each.patience for each in asks],
        within=[each.within for each in asks],
        asked=[each.asked for each in asks],
        heard=[each.heard for each in asks],
    )


def _by_rows(asks: _Asks) -> list[Ask]:
    claims = (asks.sets[each] for each in asks.claims)
    more = (asks.since, asks.patience, asks.within, asks.asked, asks.heard)
    return list(map(Ask, asks.incident, asks.node, claims, *more))
