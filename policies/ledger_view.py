"""What the budget answers when asked how it stands: small and bounded, however many wait.

`gpumend budget show` and the run's card are made of this. Counts are of everybody; rows are cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from policies.budget_use import Use, census_age, stopped
from policies.ledger import Ask, Freeze, Lease, Ledger, WithPeople

MOST_ROWS = 100
"""Rows of each kind in one answer."""
UNANSWERED_AFTER = timedelta(minutes=30)
"""An ask that waits longer than this is an alarm: the budget may be too small, or stuck."""


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """One scope. `maximum` is the smallest that anybody on record stated; None: nobody did.

    `size` is the census's; None: it does not know the scope. `barred` is the open breaker's word.
    """

    scope: str
    maximum: int | None
    size: int | None
    leased: int
    down: int
    handed_off: int
    waiting: int
    barred: str = ""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node that is lent, waits or is with people, since when, and what stops it (if it waits)."""

    node: str
    incident: str
    since: datetime
    why: str = ""


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger at one moment. `stopped` says what stops every grant, empty if nothing does.

    `unanswered` asks have waited longer than `UNANSWERED_AFTER`. Rows: the busiest scopes, the
    oldest leases, the first of the queue in its order, the oldest hand-offs.
    """

    at: datetime
    leased: int
    waiting: int
    handed_off: int
    unanswered: int
    stopped: str
    freeze: Freeze | None
    census_at: datetime | None
    census_age: timedelta | None
    scopes: tuple[ScopeRow, ...]
    leases: tuple[NodeRow, ...]
    queue: tuple[NodeRow, ...]
    with_people: tuple[NodeRow, ...]


def view(ledger: Ledger, now: datetime, most: int = MOST_ROWS) -> LedgerView:
    """The ledger for people, in at most `most` rows of each kind."""
    use = Use(ledger)
    halt = stopped(ledger, now)
    leases = sorted(ledger.leases, key=lambda each: (each.granted, each.ask.incident))
    return LedgerView(
        at=now,
        leased=len(ledger.leases),
        waiting=len(ledger.waiting),
        handed_off=len(ledger.with_people),
        unanswered=len(unanswered(ledger, now)),
        stopped=halt,
        freeze=ledger.freeze,
        census_at=ledger.census.at if ledger.census else None,
        census_age=census_age(ledger, now),
        scopes=_scopes(ledger, use)[:most],
        leases=tuple(_row(each.ask, each.granted) for each in leases[:most]),
        queue=tuple(
            _row(each, each.asked or each.since, halt or use.why(each))
            for each in ledger.waiting[:most]
        ),
        with_people=tuple(_row(each.ask, each.since) for each in ledger.with_people[:most]),
    )


def unanswered(ledger: Ledger, now: datetime) -> tuple[Ask, ...]:
    """Asks that wait for longer than an ask should."""
    limit = now - UNANSWERED_AFTER
    return tuple([each for each in ledger.waiting if (each.asked or each.since) <= limit])


def _scopes(ledger: Ledger, use: Use) -> tuple[ScopeRow, ...]:
    """Scopes that anybody on record claims or a breaker bars, the busiest first."""
    waiting, maxima = _claimed(ledger.waiting)
    for asks in (_asks(ledger.leases), _asks(ledger.with_people)):
        for scope, maximum in _claimed(asks)[1].items():
            maxima[scope] = min(maximum, maxima.get(scope, maximum))
    barred = ledger.census.barred if ledger.census else {}
    sizes = ledger.census.scopes if ledger.census else {}
    rows = [
        ScopeRow(
            scope=scope,
            maximum=maxima.get(scope),
            size=sizes[scope].size if scope in sizes else None,
            leased=use.leased(scope),
            down=use.down(scope),
            handed_off=use.handed_off(scope),
            waiting=waiting.get(scope, 0),
            barred=barred.get(scope, ""),
        )
        for scope in {*maxima, *barred}
    ]
    busy = sorted(rows, key=lambda each: (-each.waiting, -each.leased, -each.down, each.scope))
    return tuple(busy)


def _asks(entries: Iterable[Lease | WithPeople]) -> Iterable[Ask]:
    return (each.ask for each in entries)


def _claimed(asks: Iterable[Ask]) -> tuple[dict[str, int], dict[str, int]]:
    """By scope, how many claim it and the smallest maximum stated; plain, since many may wait."""
    counts: dict[str, int] = {}
    maxima: dict[str, int] = {}
    for ask in asks:
        for claim in ask.claims:
            scope, maximum = claim.scope, claim.maximum
            counts[scope] = counts.get(scope, 0) + 1
            if maximum < maxima.get(scope, maximum + 1):
                maxima[scope] = maximum
    return counts, maxima


def _row(ask: Ask, since: datetime, why: str = "") -> NodeRow:
    return NodeRow(ask.node, ask.incident, since, why)
