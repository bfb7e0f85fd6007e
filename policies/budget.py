"""The arithmetic of the disruption budget: who holds a lease, who waits, who may go next.

Every scope must agree. Asking twice is asking once: leases and asks are keyed by incident. What
is granted is never above a scope's maximum as the ask that gets it states it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """One scope that a lease would use (`rack/r7`), and how many leases it allows at once."""

    scope: str
    maximum: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks (the id of an incident's workflow), for which node, since when it is open."""

    incident: str
    node: str
    claims: tuple[Claim, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """An ask that was granted. `looked` is when somebody last saw that it is still needed."""

    ask: Ask
    granted: datetime
    looked: datetime


@dataclass(frozen=True, slots=True)
class Freeze:
    """While it stands nothing is granted."""

    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that the budget knows. `waiting` is in the order in which asks are served: by age."""

    leases: tuple[Lease, ...] = ()
    waiting: tuple[Ask, ...] = ()
    freeze: Freeze | None = None

    @property
    def used(self) -> Counter[str]:
        """Leases by scope."""
        return Counter(each.scope for lease in self.leases for each in lease.ask.claims)

    @property
    def holders(self) -> frozenset[str]:
        """Incidents that hold a lease."""
        return frozenset(lease.ask.incident for lease in self.leases)


def ask(ledger: Ledger, asks: Iterable[Ask], now: datetime) -> Ledger:
    """Put asks on record and grant what may be granted. A holder's ask changes nothing."""
    holders = ledger.holders
    new = {each.incident: each for each in asks if each.incident not in holders}
    kept = [each for each in ledger.waiting if each.incident not in new]
    waiting = sorted((*kept, *new.values()), key=lambda each: (each.since, each.incident))
    return grant(replace(ledger, waiting=tuple(waiting)), now)


def give(ledger: Ledger, incidents: Collection[str], now: datetime) -> Ledger:
    """Take leases back and withdraw asks; then grant what that makes room for."""
    leases = tuple(each for each in ledger.leases if each.ask.incident not in incidents)
    waiting = tuple(each for each in ledger.waiting if each.incident not in incidents)
    return grant(replace(ledger, leases=leases, waiting=waiting), now)


def grant(ledger: Ledger, now: datetime) -> Ledger:
    """Serve who waits, the oldest first; one that a full scope keeps waiting holds up nobody else.

    Each is bound by the maxima that it states itself: policies and fleets change while others wait.
    """
    if ledger.freeze:
        return ledger
    used = ledger.used
    leases, waiting = list(ledger.leases), []
    for each in ledger.waiting:
        if all(used[claim.scope] < claim.maximum for claim in each.claims):
            used.update(claim.scope for claim in each.claims)
            leases.append(Lease(each, now, now))
        else:
            waiting.append(each)
    return replace(ledger, leases=tuple(leases), waiting=tuple(waiting))


def freeze(ledger: Ledger, actor: str, reason: str, now: datetime) -> Ledger:
    """Grant nothing more until thawed; leases that are out stay out."""
    return replace(ledger, freeze=Freeze(actor, reason, now))


def thaw(ledger: Ledger, now: datetime) -> Ledger:
    """Grant again."""
    return grant(replace(ledger, freeze=None), now)


def seen(ledger: Ledger, incidents: Collection[str], now: datetime) -> Ledger:
    """Note that these leases were looked at and are still needed."""
    leases = tuple(
        replace(each, looked=now) if each.ask.incident in incidents else each
        for each in ledger.leases
    )
    return replace(ledger, leases=leases)


def oldest_first(ledger: Ledger) -> Sequence[Lease]:
    """Leases in the order in which they are due to be looked at."""
    return sorted(ledger.leases, key=lambda each: (each.looked, each.ask.incident))


def why(ledger: Ledger, waits: Ask) -> str:
    """What stops an ask, for people."""
    if ledger.freeze:
        return f"frozen by {ledger.freeze.actor}: {ledger.freeze.reason}"
    used = ledger.used
    full = [each for each in waits.claims if used[each.scope] >= each.maximum]
    return (
        "; ".join(f"{each.scope} lends {each.maximum} at once" for each in full) or "in the queue"
    )


def in_words(ledger: Ledger) -> str:
    """The ledger as a card for people, bounded."""
    lines = [f"### {len(ledger.leases)} leases, {len(ledger.waiting)} waiting"]
    if ledger.freeze:
        lines.append(f"**frozen** by {ledger.freeze.actor}: {ledger.freeze.reason}")
    lines += [f"- {each.ask.node}: lent" for each in ledger.leases[:_SHOWN]]
    lines += [f"- {each.node}: {why(ledger, each)}" for each in ledger.waiting[:_SHOWN]]
    return "\n".join(lines)


_SHOWN = 50
