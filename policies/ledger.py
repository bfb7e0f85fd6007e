"""What the disruption budget keeps: asks, leases, nodes that people have, a freeze, a census.

Only the words. What follows from them is `policies.budget` (what changes it), `policies.budget_use`
(how much of a scope is used) and `policies.ledger_view` (what people are shown).
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from fleet.census import Census

MOST_OVERTAKING = timedelta(hours=1)
"""Nobody who asked this much later is served before, however urgent: so nothing waits for ever."""
_OVERTAKING = int(MOST_OVERTAKING.total_seconds())


@lru_cache(maxsize=128)
def _waits(patience: int) -> timedelta:
    """Kept, since a queue of thousands is put in order again and again: policies name a few."""
    return timedelta(seconds=min(patience, _OVERTAKING))


@dataclass(frozen=True, slots=True)
class Claim:
    """One scope that a lease would use (`rack/r7`), and how many nodes may be out in it at once.

    `hand_offs` says whether a node that was handed to a person still uses the scope.
    """

    scope: str
    maximum: int
    hand_offs: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks (the id of an incident's workflow), for which node, and since when it is open.

    `patience`: seconds that jobs may stay with the worst of its faults; the fewer, the sooner it is
    served. `within` are scopes that the node is in and no budget counts in: a breaker may bar them.
    `asked` (the first time) and `heard` (the last) are the ledger's own, whatever the asker writes.
    """

    incident: str
    node: str
    claims: tuple[Claim, ...]
    since: datetime
    patience: int = 0
    within: tuple[str, ...] = ()
    asked: datetime | None = None
    heard: datetime | None = None

    @property
    def due(self) -> datetime:
        """The order of the queue: the first ask and, at most an hour long, its patience."""
        return (self.asked or self.since) + _waits(self.patience)


def reach_of(ask: Ask) -> tuple[int, int]:
    """A name of all that an ask concerns but its node: many that were read together share theirs.

    Good only while the asks are there; equal reaches may have several names.
    """
    return id(ask.claims), id(ask.within)


@dataclass(frozen=True, slots=True)
class Lease:
    """An ask that was granted.

    `looked` is when somebody last saw that it is still needed; `told`: the incident knows of it.
    """

    ask: Ask
    granted: datetime
    looked: datetime
    told: bool = False


@dataclass(frozen=True, slots=True)
class WithPeople:
    """A node that was handed to a person. Without a lease it may use its scopes all the same."""

    ask: Ask
    since: datetime
    looked: datetime


@dataclass(frozen=True, slots=True)
class Freeze:
    """While it stands nothing is granted."""

    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that the budget knows. `waiting` is in the order in which asks are served.

    `census` is the last that came, `counted` when it came by our own clock: the watcher's may be
    wrong.
    """

    leases: tuple[Lease, ...] = ()
    waiting: tuple[Ask, ...] = ()
    with_people: tuple[WithPeople, ...] = ()
    freeze: Freeze | None = None
    census: Census | None = None
    counted: datetime | None = None

    @property
    def used(self) -> Counter[str]:
        """Leases by scope."""
        return Counter(each.scope for lease in self.leases for each in lease.ask.claims)

    @property
    def holders(self) -> frozenset[str]:
        """Incidents that hold a lease."""
        return frozenset(lease.ask.incident for lease in self.leases)
