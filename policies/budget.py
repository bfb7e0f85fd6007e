"""The arithmetic of the disruption budget: who holds a lease, who waits, who may go next.

Every scope must agree. Asking twice is asking once: leases and asks are keyed by incident. Nothing
is granted beyond a scope's maximum as the ask that gets it states it, whatever else is down there;
nodes may fail unasked, so a scope may be used beyond its maximum without a grant of ours.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter

from fleet.census import Census
from policies.budget_use import Use, stopped
from policies.ledger import Ask, Freeze, Lease, Ledger, WithPeople, reach_of

OVERDUE = timedelta(hours=1)
"""An ask that is due since then is kept room for where its scopes free themselves one by one.

So nothing waits for ever: from then on an ask is served after at most as many generations of leases
as there were asks before it (given that leases come back and nothing else is in its way).
"""


def ask(ledger: Ledger, asks: Iterable[Ask], now: datetime) -> Ledger:
    """Put asks on record and grant what may be granted. A holder that asks again is alive."""
    every, holders = {each.incident: each for each in asks}, ledger.holders
    ledger = _alive(ledger, holders & every.keys(), now)
    new = {name: each for name, each in every.items() if name not in holders}
    if not new:
        return ledger
    known = {each.incident: each for each in ledger.waiting if each.incident in new}
    waiting = list(ledger.waiting)
    if known:
        waiting = [each for each in waiting if each.incident not in known]
    for each in new.values():
        before = known.get(each.incident)
        waiting.append(_on_record(each, before.asked if before and before.asked else now, now))
    waiting.sort(key=_ORDER)
    kept = tuple(each for each in ledger.with_people if each.ask.incident not in new)
    changed = replace(ledger, waiting=tuple(waiting), with_people=kept)
    freer = len(kept) < len(ledger.with_people) or _are_down(ledger, new.values())
    return _serve(changed, now, None if freer else frozenset(new))


def give(ledger: Ledger, incidents: Collection[str], now: datetime) -> Ledger:
    """Take leases back, withdraw asks, forget hand-offs; then grant what that makes room for."""
    if not incidents:
        return ledger
    return grant(_without(ledger, incidents), now)


def hand_off(ledger: Ledger, asks: Iterable[Ask], now: datetime) -> Ledger:
    """Take leases and asks of these back; people have their nodes now.

    In scopes that count hand-offs a place that a lease used is at no moment free between.
    """
    new = {each.incident: each for each in asks}
    if not new:
        return ledger
    since = {each.ask.incident: each.since for each in ledger.with_people}
    rest = _without(ledger, new.keys())
    added = (WithPeople(each, since.get(each.incident, now), now) for each in new.values())
    return grant(replace(rest, with_people=(*rest.with_people, *added)), now)


def grant(ledger: Ledger, now: datetime) -> Ledger:
    """Serve who waits, in order; one that a full scope keeps waiting holds up nobody else.

    Each is bound by the maxima that it states itself: policies and fleets change while others wait.
    """
    return _serve(ledger, now, None)


def count(ledger: Ledger, census: Census, now: datetime) -> Ledger:
    """Take in how the fleet stands. One that is older than the last changes nothing."""
    if ledger.census and census.at <= ledger.census.at:
        return ledger
    return grant(replace(ledger, census=census, counted=now), now)


def freeze(ledger: Ledger, actor: str, reason: str, now: datetime) -> Ledger:
    """Grant nothing more until thawed; leases that are out stay out."""
    return replace(ledger, freeze=Freeze(actor, reason, now))


def thaw(ledger: Ledger, now: datetime) -> Ledger:
    """Grant again."""
    return grant(replace(ledger, freeze=None), now)


def told(ledger: Ledger, incidents: Collection[str]) -> Ledger:
    """Note that these know of their leases."""
    if not incidents:
        return ledger
    leases = tuple(
        replace(each, told=True) if each.ask.incident in incidents else each
        for each in ledger.leases
    )
    return replace(ledger, leases=leases)


def _alive(ledger: Ledger, holders: Collection[str], now: datetime) -> Ledger:
    if not holders:
        return ledger
    leases = tuple(
        replace(each, looked=now, told=True) if each.ask.incident in holders else each
        for each in ledger.leases
    )
    return replace(ledger, leases=leases)


def _serve(ledger: Ledger, now: datetime, among: frozenset[str] | None) -> Ledger:
    """Grant what fits. With `among`, only these may: nothing became freer for anybody else."""
    if not ledger.waiting or stopped(ledger, now):
        return ledger
    use = Use(ledger)
    granted: list[Ask] = []
    overdue, full = True, set()
    for each in ledger.waiting:
        overdue = overdue and each.due + OVERDUE <= now  # the queue is in this order
        if not overdue and among is not None and each.incident not in among:
            continue
        if not overdue and reach_of(each) in full:  # nothing comes free while others are granted
            continue
        if use.fits(each):
            use.take(each)
            granted.append(each)
            continue
        full.add(reach_of(each))
        if overdue:
            use.reserve(each)
    return _with_leases(ledger, granted, now)


def _with_leases(ledger: Ledger, granted: Sequence[Ask], now: datetime) -> Ledger:
    if not granted:
        return ledger
    names = frozenset(each.incident for each in granted)
    waiting = tuple(each for each in ledger.waiting if each.incident not in names)
    leases = (*ledger.leases, *(Lease(each, now, now) for each in granted))
    return replace(ledger, leases=leases, waiting=waiting)


def _without(ledger: Ledger, incidents: Collection[str]) -> Ledger:
    return replace(
        ledger,
        leases=tuple(each for each in ledger.leases if each.ask.incident not in incidents),
        waiting=tuple(each for each in ledger.waiting if each.incident not in incidents),
        with_people=tuple(
            each for each in ledger.with_people if each.ask.incident not in incidents
        ),
    )


def _are_down(ledger: Ledger, asks: Iterable[Ask]) -> bool:
    """Whether who asks was counted as down until now, which made others wait."""
    if ledger.census is None:
        return False
    mine = {each.node for each in asks}
    return any(not mine.isdisjoint(each.down) for each in ledger.census.scopes.values())


def _on_record(ask: Ask, asked: datetime, heard: datetime) -> Ask:
    """As `replace` does it, in a third of its time or in none: a storm has ten thousand."""
    if ask.heard == heard and ask.asked == asked:
        return ask
    within, patience = ask.within, ask.patience
    return Ask(ask.incident, ask.node, ask.claims, ask.since, patience, within, asked, heard)


_ORDER = attrgetter("due", "since", "incident")
