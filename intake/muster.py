"""Who counts for the breaker: the sick, the held back and the serving of each scope. Pure.

Kept up node by node, so that a gate can be asked thousands of times in a storm. When a breaker
opens is not decided here.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from intake.breaker_record import born_key, circuit_key
from intake.member import Member
from policies.breaker import Circuit, Count


@dataclass(frozen=True, slots=True)
class Ward:
    """What is judged as one: a scope, or the nodes of it that have just been born."""

    key: str
    scope: str
    count: Count
    sick: frozenset[str]
    fault: str = ""


class Muster:
    """Bounded by the number of nodes."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self._by_scope: defaultdict[str, set[str]] = defaultdict(set)
        self._sick: defaultdict[str, set[str]] = defaultdict(set)
        self._serving: defaultdict[str, set[str]] = defaultdict(set)
        self._faulty: set[str] = set()

    def put(self, name: str, member: Member | None) -> bool:
        """The node is this from now on (None: gone); False if it was so before."""
        before = self.members.get(name)
        if before == member:
            return False
        if before:
            self.members.pop(name)
            for known in (self._by_scope, self._sick, self._serving):
                known[before.scope].discard(name)
                if not known[before.scope]:
                    del known[before.scope]
            self._faulty.discard(name)
        if member and member.scope:
            self._add(name, member)
        return True

    def _add(self, name: str, member: Member) -> None:
        self.members[name] = member
        self._by_scope[member.scope].add(name)
        if member.sick:
            self._sick[member.scope].add(name)
        if member.serves:
            self._serving[member.scope].add(name)
        if member.fault:
            self._faulty.add(name)

    def count(self, scope: str) -> Count:
        """How many nodes the scope has, and how many count as sick."""
        return Count(len(self._by_scope.get(scope, ())), len(self._sick.get(scope, ())))

    def serving(self, scope: str) -> Collection[str]:
        """The nodes of the scope on which new work can land."""
        return self._serving.get(scope, ())

    def scopes(self) -> Collection[str]:
        """Every scope that has a sick node."""
        return self._sick.keys()

    def all_scopes(self) -> Collection[str]:
        """Every scope that has a node."""
        return self._by_scope.keys()

    def everyone(self, scope: str) -> Collection[str]:
        """Every node of the scope."""
        return self._by_scope.get(scope, ())

    def waiting(self, ward: Ward) -> list[str]:
        """Who of the ward is free and to be held, worst first."""
        ranked = {name: self.members[name].rank for name in ward.sick}
        found = [(rank, name) for name, rank in ranked.items() if rank is not None]
        return [name for _, name in sorted(found)]

    def wards(
        self, circuits: Mapping[str, Circuit], now: datetime, newborn: timedelta
    ) -> dict[str, Ward]:
        """Everything that a breaker may open for now."""
        whole = (self._whole(scope) for scope in self.scopes())
        found = {each.key: each for each in (*whole, *self._births(circuits, now, newborn))}
        gone = {
            key: Ward(key, "", Count(0, 0), frozenset()) for key in circuits if key not in found
        }
        return {**found, **gone}

    def _whole(self, scope: str) -> Ward:
        sick = frozenset(self._sick[scope])
        return Ward(circuit_key(scope), scope, self.count(scope), sick)

    def _births(
        self, circuits: Mapping[str, Circuit], now: datetime, newborn: timedelta
    ) -> Iterator[Ward]:
        """A circuit that is open keeps the births that opened it, however old they get."""
        faulty: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for name in self._faulty:
            member = self.members[name]
            faulty[member.scope, member.fault].add(name)
        for (scope, fault), names in faulty.items():
            key = born_key(scope, fault)
            since = min(now, circuits[key].since) if key in circuits else now
            sick = frozenset(each for each in names if self._young(each, since - newborn))
            if sick:
                size = sum(self._young(each, since - newborn) for each in self._by_scope[scope])
                yield Ward(key, scope, Count(size, len(sick)), sick, fault)

    def _young(self, name: str, after: datetime) -> bool:
        born = self.members[name].born
        return born is not None and born > after
