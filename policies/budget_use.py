"""How much of each scope is used, and what stops an ask: counted once for many asks.

Used in a scope: leases, nodes that are down for reasons of others, and nodes that people have,
where the policy of who asks counts those. Each node counts once: one that holds a lease or waits
for one is never counted as down or handed off as well, and one that people have is never down.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain

from policies.ledger import Ask, Claim, Ledger, reach_of

CENSUS_GOOD_FOR = timedelta(seconds=60)
"""Older than this, a census says nothing about now, and nothing is granted by it."""


class Use:
    """The use of every scope by one ledger; `take` and `reserve` change it, the ledger stays."""

    def __init__(self, ledger: Ledger) -> None:
        self._census = ledger.census
        self._held = [_scopes(lease.ask) for lease in ledger.leases]
        self._leased = Counter(chain.from_iterable(self._held))
        self._served = frozenset(
            [*(each.ask.node for each in ledger.leases), *(each.node for each in ledger.waiting)]
        )
        self._given: dict[str, set[str]] = {}
        for each in ledger.with_people:
            for scope in _scopes(each.ask):
                self._given.setdefault(scope, set()).add(each.ask.node)
        self._counts: dict[str, tuple[int, int]] = {}
        self._reserved: dict[str, int] = {}
        self._awaited: set[str] = set()

    def leased(self, scope: str) -> int:
        """Leases in the scope."""
        return self._leased.get(scope, 0)

    def handed_off(self, scope: str) -> int:
        """Nodes that people have, by our own record or by the census."""
        return self._others(scope)[1]

    def down(self, scope: str) -> int:
        """Nodes down for reasons that are not ours."""
        return self._others(scope)[0]

    def _others(self, scope: str) -> tuple[int, int]:
        """Down and handed off, each node once."""
        if scope not in self._counts:
            counted = self._census.scopes.get(scope) if self._census else None
            given = self._given.get(scope, set()).union(counted.handed_off if counted else ())
            given -= self._served
            down = set(counted.down) - given - self._served if counted else ()
            self._counts[scope] = (len(down), len(given))
        return self._counts[scope]

    def fits(self, ask: Ask) -> bool:
        """Whether nothing in the ask's own scopes stops it."""
        return not any(self._full(each) for each in ask.claims) and not self.bars(ask)

    def take(self, ask: Ask) -> None:
        """Use the ask's scopes for a lease."""
        scopes = _scopes(ask)
        self._leased.update(scopes)
        self._held.append(scopes)

    def reserve(self, ask: Ask) -> None:
        """Keep room for an ask that waits too long, so that it is served as soon as it can be.

        Only where that ends by itself: what stops it are leases, which come back. Only one ask is
        kept room for while the same scope stops several. A scope whose room comes back together
        with the lease that is waited for needs no keeping, so a full rack holds up no other rack.
        """
        full = [each for each in ask.claims if self._full(each)]
        if self.bars(ask) or any(each.scope in self._awaited for each in full):
            return
        if any(self._fixed(each) >= each.maximum for each in full):
            return
        self._awaited.update(each.scope for each in full)
        for scope in _scopes(ask) - {each.scope for each in full}:
            if not any(self._comes_with(scope, each.scope) for each in full):
                self._reserved[scope] = self._reserved.get(scope, 0) + 1

    def bars(self, ask: Ask) -> Sequence[str]:
        """The scopes of the ask whose breaker is open."""
        barred = self._census.barred if self._census else {}
        if not barred:
            return ()
        mine = dict.fromkeys([*(each.scope for each in ask.claims), *ask.within])
        return [each for each in mine if each in barred]

    def whys(self, asks: Sequence[Ask]) -> Sequence[str]:
        """The same of many, each reach once."""
        words: dict[tuple[int, int], str] = {}
        for each in asks:
            if reach_of(each) not in words:
                words[reach_of(each)] = self.why(each)
        return [words[reach_of(each)] for each in asks]

    def why(self, ask: Ask) -> str:
        """What stops the ask in its own scopes, in words."""
        barred = self._census.barred if self._census else {}
        words = [f"the breaker of {each} is open: {barred[each]}" for each in self.bars(ask)]
        words += [self._in_words(each) for each in ask.claims if self._full(each)]
        return "; ".join(words) or "in the queue"

    def _in_words(self, claim: Claim) -> str:
        scope, text = claim.scope, f"{claim.scope} lends {claim.maximum} at once"
        more = (
            (self.down(scope), "down for other reasons"),
            (self.handed_off(scope) if claim.hand_offs else 0, "with people"),
            (self._reserved.get(scope, 0), "kept for who waited longer"),
        )
        parts = [f"{count} {what}" for count, what in more if count]
        return f"{text} ({', '.join([f'{self.leased(scope)} lent', *parts])})" if parts else text

    def _full(self, claim: Claim) -> bool:
        scope = claim.scope
        used = self._leased.get(scope, 0) + self._fixed(claim) + self._reserved.get(scope, 0)
        return used >= claim.maximum

    def _fixed(self, claim: Claim) -> int:
        """What no lease that comes back makes room for."""
        down, given = self._others(claim.scope)
        return down + given if claim.hand_offs else down

    def _comes_with(self, scope: str, full: str) -> bool:
        """Whether every lease that fills one scope is in the other one, too."""
        return all(scope in each for each in self._held if full in each)


def stopped(ledger: Ledger, now: datetime) -> str:
    """What stops every grant just now, in words; empty if nothing does."""
    if ledger.freeze:
        return f"frozen by {ledger.freeze.actor}: {ledger.freeze.reason}"
    age = census_age(ledger, now)
    if age is None:
        return "nobody has counted the fleet yet: does the watcher run?"
    if age > CENSUS_GOOD_FOR:
        limit = int(CENSUS_GOOD_FOR.total_seconds())
        return (
            f"the last census of the fleet is {int(age.total_seconds())} s old (at most {limit} s):"
            " does the watcher run, and are the clocks right?"
        )
    return ""


def census_age(ledger: Ledger, now: datetime) -> timedelta | None:
    """How old the census is by the clock that makes it look older; None before the first."""
    if ledger.census is None:
        return None
    return now - min(ledger.census.at, ledger.counted or ledger.census.at)


def _scopes(ask: Ask) -> frozenset[str]:
    return frozenset(each.scope for each in ask.claims)
