"""What the ledger makes of a look at those on record: who is over, who has gone to people.

A lease has no end of its own. When nobody has seen its holder for a while, somebody looks; what
cannot be told keeps the lease. Only what was said before the look began is judged by it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from itertools import chain

from policies import budget
from policies.ledger import Ask, Ledger


class Found(StrEnum):
    """What a look found: OPEN and at work, WITH_PEOPLE (handed off), or OVER (nobody needs it)."""

    OPEN = "open"
    WITH_PEOPLE = "with-people"
    OVER = "over"


def to_look_at(ledger: Ledger, due: datetime, most: int) -> Mapping[str, str]:
    """At most so many incidents and their nodes that nobody has seen alive after `due`."""
    oldest = next_look(ledger)
    if oldest is None or oldest > due:
        return {}
    old = [(seen, each) for seen, each in _on_record(ledger) if seen <= due]
    first = sorted(old, key=lambda each: (each[0], each[1].incident))[:most]
    return {each.incident: each.node for _, each in first}


def next_look(ledger: Ledger) -> datetime | None:
    """When the one that was seen longest ago was seen; None where nobody is on record."""
    leases = [each.looked for each in ledger.leases]
    people = [each.looked for each in ledger.with_people]
    waiting = [each.heard or each.since for each in ledger.waiting]
    return min(chain(leases, people, waiting), default=None)


def looked(
    ledger: Ledger,
    asked: Collection[str],
    found: Mapping[str, str],
    began: datetime,
    now: datetime,
) -> Ledger:
    """Take in a look at `asked` that began then. Who is not in `found` could not be told."""
    spoke = {each.incident for seen, each in _on_record(ledger) if seen > began}
    judged = frozenset(asked) - spoke
    over = {each for each in judged if found.get(each) == Found.OVER}
    back = {
        each.ask.incident
        for each in ledger.with_people
        if found.get(each.ask.incident) == Found.OPEN
    }
    gone = [
        each
        for each in (*(lease.ask for lease in ledger.leases), *ledger.waiting)
        if each.incident in judged and found.get(each.incident) == Found.WITH_PEOPLE
    ]
    ledger = _seen(ledger, judged, now)
    ledger = budget.hand_off(ledger, gone, now)
    return budget.give(ledger, over | (back & judged), now)


def _seen(ledger: Ledger, incidents: Collection[str], now: datetime) -> Ledger:
    return replace(
        ledger,
        leases=tuple(
            replace(each, looked=now) if each.ask.incident in incidents else each
            for each in ledger.leases
        ),
        with_people=tuple(
            replace(each, looked=now) if each.ask.incident in incidents else each
            for each in ledger.with_people
        ),
        waiting=tuple(
            replace(each, heard=now) if each.incident in incidents else each
            for each in ledger.waiting
        ),
    )


def _on_record(ledger: Ledger) -> Sequence[tuple[datetime, Ask]]:
    """Everybody, with when somebody last saw it alive."""
    return [
        *((each.looked, each.ask) for each in ledger.leases),
        *((each.looked, each.ask) for each in ledger.with_people),
        *((each.heard or each.since, each) for each in ledger.waiting),
    ]
