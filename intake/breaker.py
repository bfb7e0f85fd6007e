"""The breaker as a gate of admission: no new holds where too much is sick at once.

The share is judged at every question; what must outlive a leader (that it is open, whose turn
comes when, what a person accepted) is in a ConfigMap, changed by compare-and-set. What cannot be
read is taken for open.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.errors import Ambiguous, Conflict, Refused, TooManyRequests, Transient
from fleet.node import NodeState
from fleet.report import Report
from intake.breaker_record import born_key, circuit_key
from intake.breaker_round import Judging, go_round
from intake.breaker_store import BreakerStore, Stored
from intake.member import Member
from intake.muster import Muster, Ward
from intake.surroundings import Surroundings
from policies.breaker import Circuit, Phase, set_aside
from policies.storm import MOST_NODES, Storm

UNREAD = "breaker-unread"


@dataclass(frozen=True, slots=True)
class Callers:
    """Whom the breaker asks and tells: to judge a node again, what the sick of a ward have in
    common, and that the record has changed."""

    judge: Callable[[str], None]
    cause_of: Callable[[Ward, Muster], str]
    changed: Callable[[], None]


class Breaker:
    """What a node is to its scope must be noted before its gate is asked."""

    def __init__(self, given: Surroundings, callers: Callers) -> None:
        self.muster = Muster()
        self.circuits: Mapping[str, Circuit] = {}
        self._known = False
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._announce = given.announce
        self._judging = Judging(given.rules.breaker, given.settings.newborn_faults)
        self._store = BreakerStore(given.kubernetes, given.journal)
        self._callers = callers
        self._turns: defaultdict[str, set[str]] = defaultdict(set)
        self._told: dict[tuple[str, datetime | None], str] = {}
        self._news = asyncio.Event()

    def note(self, name: str, member: Member | None) -> None:
        """What a node is to its scope from now on; None where it is gone."""
        if self.muster.put(name, member):
            if member is None or not member.waits:
                self._turns.pop(name, None)
            self._news.set()

    def gate(self, node: NodeState, report: Report) -> str:
        """Why this node must not be held now; empty where its breakers are closed."""
        del report
        name = node.identity.name
        member = self.muster.members.get(name)
        if member is None:
            return ""
        if not self._known:
            return UNREAD
        found = (self._bars(name, key) for key in _keys_of(member))
        return self._above(member.scope) or next((each for each in found if each), "")

    def barred(self) -> Mapping[str, str]:
        """Scopes in which nothing new may be lent, and why."""
        if not self._known:
            return dict.fromkeys(self.muster.all_scopes(), UNREAD)
        above = {each: why for each in self.muster.scopes() if (why := self._above(each))}
        opened = {c.scope: c.cause for c in self.circuits.values() if c.phase is Phase.OPEN}
        return {**opened, **above}

    async def read(self) -> None:
        """Learn what is on record, before the first node is judged."""
        with suppress(_Missed):
            await self._learn()

    async def look(self) -> None:
        """One round over everything that is judged as one; a round that fails changes nothing."""
        self._news.clear()
        with suppress(_Missed):
            await self._go_round()

    async def run(self) -> None:
        """Keep the record until cancelled."""
        rest = self._settings.breaker_rest.total_seconds()
        every = self._settings.breaker_look_every.total_seconds()
        while True:
            await self.look()
            await self._clock.sleep(rest)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0, every - rest)):
                    await self._news.wait()

    def _above(self, scope: str) -> str:
        """Judged at once, whatever is on record: the next hold may be the one too many."""
        count = self.muster.count(scope)
        circuit = self.circuits.get(circuit_key(scope))
        ward = Ward(circuit_key(scope), scope, count, frozenset())
        if self._judging.above(ward, set_aside(count, circuit)):
            return f"breaker open: {self._judging.why(ward)}"
        return ""

    def _bars(self, name: str, key: str) -> str:
        circuit = self.circuits.get(key)
        if circuit is None or not _shut(circuit) or key in self._turns.get(name, ()):
            return ""
        return f"breaker {circuit.phase}: {circuit.cause}"

    async def _go_round(self) -> None:
        stored, now = await self._learn(), self._clock.now()
        for key in stored.orders.keys() - stored.circuits.keys():
            self._journal.say("nothing-to-close", breaker=key)
        wards = self.muster.wards(stored.circuits, now, self._settings.newborn_for)
        found = go_round(stored.circuits, stored.orders, wards, self._held_back, self._judging, now)
        after = {key: self._as_told(key, each) for key, each in found.circuits.items()}
        with self._missing("cannot-write-breaker"):
            await self._store.write(stored, after)
        self._adopt(after, wards)
        for key, names in found.turns.items():
            self._let_go(key, names)
        await self._tell_all(wards)

    async def _learn(self) -> Stored:
        with self._missing("cannot-read-breaker"):
            stored = await self._store.read(self._clock.now())
        if not self._known:
            self._known = True
            self._callers.changed()
            self._adopt(stored.circuits, {})
        return stored

    def _held_back(self, ward: Ward) -> list[str]:
        waiting = self.muster.waiting(ward)
        return [each for each in waiting if ward.key not in self._turns.get(each, ())]

    def _adopt(self, after: Mapping[str, Circuit], wards: Mapping[str, Ward]) -> None:
        """Believe what is on record; who was held back by what is no more is judged again."""
        before, self.circuits = self.circuits, after
        if before != after:
            self._callers.changed()
        for key, circuit in after.items():
            known = before.get(key)
            if known is None or known.phase is not circuit.phase:
                self._say(key, circuit)
        for key, ward in wards.items():
            if after.get(key) is None and key in before:
                self._journal.say("breaker-closed", breaker=key)
            if key in before and not _shut(after.get(key)):
                for name in self.muster.waiting(ward):
                    self._callers.judge(name)

    def _say(self, key: str, circuit: Circuit) -> None:
        if circuit.phase is Phase.OPEN:  # whoever had a turn and did not take it waits again
            for keys in self._turns.values():
                keys.discard(key)
        by = {"by": circuit.by} if circuit.by else {}
        self._journal.say(f"breaker-{circuit.phase}", breaker=key, because=circuit.cause, **by)

    def _let_go(self, key: str, names: tuple[str, ...]) -> None:
        for name in names:
            self._turns[name].add(key)
            self._journal.say("let-go", node=name, breaker=key)
            self._callers.judge(name)

    def _as_told(self, key: str, circuit: Circuit) -> Circuit:
        cause = self._told.get((key, circuit.opened))
        return replace(circuit, told=True, cause=cause) if cause else circuit

    async def _tell_all(self, wards: Mapping[str, Ward]) -> None:
        """One word for a storm. It is on record before it is told, and as told after that."""
        for key, circuit in self.circuits.items():
            if circuit.untold and key in wards:
                storm = self._storm(circuit, wards[key])
                if not self._told_with_its_scope(wards[key]):
                    with self._missing("cannot-announce-storm"):
                        await self._announce(storm)
                self._told[key, circuit.opened] = storm.why
                self._news.set()
        self._told = {at: why for at, why in self._told.items() if at[0] in self.circuits}

    def _told_with_its_scope(self, ward: Ward) -> bool:
        """The newborn of a pool that is sick as a whole are no second storm."""
        whole = self.circuits.get(circuit_key(ward.scope))
        return bool(ward.fault) and _shut(whole)

    def _storm(self, circuit: Circuit, ward: Ward) -> Storm:
        cause = self._callers.cause_of(ward, self.muster)
        return Storm(
            key=ward.key,
            scope=ward.scope,
            since=circuit.opened or circuit.since,
            over=circuit.phase is not Phase.OPEN,
            sick=ward.count.sick,
            size=ward.count.size,
            why=f"{circuit.cause}; in common: {cause}" if cause else circuit.cause,
            cause=cause,
            nodes=tuple(sorted(ward.sick)[:MOST_NODES]),
        )

    @contextmanager
    def _missing(self, what: str) -> Iterator[None]:
        """Said once; the next round tries again, and meanwhile nothing is let go."""
        try:
            yield
        except Conflict:
            self._news.set()
            raise _Missed from None
        except (Transient, TooManyRequests, Ambiguous, Refused) as problem:
            self._journal.trouble(what, what, because=problem, remedy=_REMEDY)
            raise _Missed from problem
        self._journal.over(what, f"{what}-no-more")


class _Missed(Exception):
    """This round came to nothing."""


_REMEDY = "the rights of the watcher are in deploy/engine-rbac.yaml"


def _shut(circuit: Circuit | None) -> bool:
    return circuit is not None and circuit.phase is not Phase.CLOSED


def _keys_of(member: Member) -> tuple[str, str]:
    return circuit_key(member.scope), born_key(member.scope, member.fault)
