"""Writes nodes by compare-and-set, and waits for its own writes to come back by the watch.

Every write of the watcher goes through here: judged on a record, guarded by that record's UID and
resourceVersion, and judged again on a fresh read after a conflict or a lost answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fleet.errors import Ambiguous, Conflict, NotFound, Refused, TooManyRequests, Transient
from fleet.names import node_path
from fleet.node import NodeState, read_node
from fleet.ports import PatchType
from intake.delays import Delays
from intake.marks import Act, Write
from intake.surroundings import Surroundings

Judge = Callable[[NodeState], Write | None]


@dataclass(slots=True)
class _Flight:
    """A write under way: what it does, and the versions of the node seen meanwhile."""

    acts: set[Act] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    expected: str = ""
    answered: float = 0.0


@dataclass(slots=True)
class WriteCounts:
    """What became of the writes so far, for metrics; `delays` are from a fault's first sight to
    its hold."""

    done: dict[Act, int] = field(default_factory=dict)
    conflicts: int = 0
    lost_answers: int = 0
    delays: Delays = field(default_factory=Delays)
    failures: int = 0


class NodeWriter:
    """One write a node at a time; `busy` until the watch has shown the node as we left it."""

    def __init__(self, given: Surroundings) -> None:
        self.counts = WriteCounts()
        self._kubernetes = given.kubernetes
        self._cluster = given.cluster
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._new_backoff = given.backoff
        self._flights: dict[str, _Flight] = {}

    def busy(self, name: str) -> bool:
        """Whether our record of the node may be older than our own last write."""
        flight = self._flights.get(name)
        if flight is None:
            return False
        waited = self._clock.monotonic() - flight.answered
        if flight.expected and waited >= self._settings.own_write_limit.total_seconds():
            del self._flights[name]
            return False
        return True

    def takes_mark_off(self, name: str) -> bool:
        """Whether a mark that vanishes from this node now was taken off by us."""
        flight = self._flights.get(name)
        ours = {Act.WITHDRAW, Act.DROP_MARK, Act.COOL_DOWN}
        return flight is not None and bool(flight.acts & ours)

    def gone(self, name: str) -> None:
        """The Node object that was written is not there any more."""
        self._flights.pop(name, None)

    def seen(self, name: str, version: str) -> None:
        """The watch or a list showed the node at this version."""
        flight = self._flights.get(name)
        if flight is None:
            return
        if version == flight.expected:
            del self._flights[name]
        elif not flight.expected:
            flight.seen.add(version)

    async def write(self, node: NodeState, judge: Judge, attempts: int = 0) -> bool:
        """Write what `judge` says, until it says nothing; True if the write is known to be ours.

        An answer that was lost is looked for, not repeated: the judge sees the node as it is now.
        """
        name = node.identity.name
        flight = self._flights[name] = _Flight()
        try:
            after = await self._try(
                node, judge, flight, attempts or self._settings.node_write_attempts
            )
        finally:
            if self._flights.get(name) is flight:
                del self._flights[name]
        if after and after.resource_version not in flight.seen:
            flight.expected = after.resource_version
            flight.answered = self._clock.monotonic()
            self._flights[name] = flight
        return after is not None

    async def _try(
        self, node: NodeState, judge: Judge, flight: _Flight, attempts: int
    ) -> NodeState | None:
        name, uid = node.identity.name, node.identity.uid
        backoff = self._new_backoff()
        current: NodeState | None = node
        for left in reversed(range(attempts)):
            write = judge(current) if current and current.identity.uid == uid else None
            if current is None or write is None:
                return None
            flight.acts.add(write.act)
            try:
                return await self._patch(current, write)
            except NotFound:
                return None
            except (Conflict, Ambiguous) as problem:
                self._count_miss(problem)
                current = await self._read_again(name) if left else None
            except (Transient, TooManyRequests) as problem:
                self._failed(name, write, problem)
                if left:
                    await self._clock.sleep(backoff.next(problem.retry_after))
            except Refused as problem:
                self._failed(name, write, problem)
                return None
        return None

    async def _patch(self, node: NodeState, write: Write) -> NodeState:
        name = node.identity.name
        answer = await self._kubernetes.patch(node_path(name), write.body, PatchType.MERGE)
        self.counts.done[write.act] = self.counts.done.get(write.act, 0) + 1
        if write.act is Act.HOLD and write.since:
            self.counts.delays.add((self._clock.now() - write.since).total_seconds())
        self._journal.over(f"write {name}", "node-writable-again", node=name)
        self._journal.say(write.act, node=name, **({"fault": write.fault} if write.fault else {}))
        return read_node(answer, self._cluster)

    async def _read_again(self, name: str) -> NodeState | None:
        try:
            return read_node(await self._kubernetes.get(node_path(name)), self._cluster)
        except (Transient, Refused) as problem:
            self._journal.trouble(f"write {name}", "cannot-read", node=name, because=problem)
            return None  # the next sweep judges it by the record of the watch

    def _count_miss(self, problem: Conflict | Ambiguous) -> None:
        if isinstance(problem, Conflict):
            self.counts.conflicts += 1
        else:
            self.counts.lost_answers += 1

    def _failed(self, name: str, write: Write, problem: Exception) -> None:
        self.counts.failures += 1
        self._journal.trouble(
            f"write {name}", "cannot-write", node=name, act=write.act.value, because=problem
        )
