"""Nodes that carry the taint until they are proven: see to it that each is being proven.

After holds, like everything that is sent. What runs already is left alone by its id, so asking
again costs little; it is done ever more seldom, since who could not tell has tried for long.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.errors import Ambiguous, Refused, Transient
from fleet.node import NodeState
from fleet.proof import IN_SERVICE
from fleet.proving import ProveTask
from intake.admission import Rank
from intake.settings import Settings
from intake.surroundings import Surroundings
from intake.work_queue import WorkQueue
from policies.proving import task_of


@dataclass(frozen=True, slots=True)
class Asked:
    """When a proof was last asked for, of which node in which boot and why, and how often."""

    about: tuple[str, str, str]
    at: datetime
    times: int


@dataclass(slots=True)
class ProverCounts:
    """What went wrong so far, for metrics."""

    failures: int = 0


def due_again(asked: Asked, about: tuple[str, str, str], now: datetime, settings: Settings) -> bool:
    """Whether it is time to ask again. Another Node object, boot or reason is asked for at once."""
    if asked.about != about:
        return True
    doubled: timedelta = settings.prove_again_after * 2 ** min(asked.times - 1, _DOUBLINGS)
    return now >= asked.at + min(doubled, settings.prove_again_at_most_after)


_DOUBLINGS = 16


class Prover:
    """Bounded by the number of nodes. Without the port nobody is asked, and in dry run only for
    what a sweep has left: such a run proves nothing and takes its taint off.

    `busy` names nodes of which our record may be older than our own last write, a hold perhaps.
    """

    def __init__(
        self, given: Surroundings, holds_idle: asyncio.Event, busy: Callable[[str], bool]
    ) -> None:
        self.counts = ProverCounts()
        self._given = given
        self._settings = given.settings
        self._holds_idle = holds_idle
        self._busy = busy
        self._queue = WorkQueue(given.settings.proofs_at_once)
        self._backoff = given.backoff()
        self._nodes: dict[str, NodeState] = {}
        self._asked: dict[str, Asked] = {}

    def look(self, node: NodeState) -> None:
        """This node, as it is now, may have to be proven."""
        name, now = node.identity.name, self._given.clock.now()
        if node.unproven is None:
            self.forget(name)
            return
        self._nodes[name] = node
        if node.mark and self._task(node, now) is None:
            self._asked.pop(name, None)  # when its incident is over, it is asked for at once
        if self._is_due(node, now):
            self._queue.put(name, (0, now, name))

    def forget(self, name: str) -> None:
        """The node is gone, or carries the taint no more."""
        self._nodes.pop(name, None)
        self._asked.pop(name, None)

    async def run(self) -> None:
        """Ask until cancelled."""
        if self._given.proofs is None:
            return
        await self._queue.run(self._ask)

    def _task(self, node: NodeState, now: datetime) -> ProveTask | None:
        task = task_of(node, now)
        asked = task and (self._given.rules.proves or task.why in IN_SERVICE)
        return task if asked else None

    def _is_due(self, node: NodeState, now: datetime) -> bool:
        if self._task(node, now) is None:
            return False
        asked = self._asked.get(node.identity.name)
        return asked is None or due_again(asked, _about(node), now, self._settings)

    async def _ask(self, name: str, rank: Rank) -> None:
        del rank
        await self._holds_idle.wait()
        node, now = self._nodes.get(name), self._given.clock.now()
        task = self._task(node, now) if node else None
        if node is None or task is None or self._given.proofs is None:
            return
        if self._busy(name) or not self._is_due(node, now):
            return
        try:
            await self._given.proofs.prove(task)
        except (Transient, Ambiguous, Refused) as problem:
            self.counts.failures += 1
            self._given.journal.trouble("proofs", "cannot-ask-for-proofs", because=problem)
            await self._given.clock.sleep(self._backoff.next())
            return  # the next sweep over all nodes puts it in again
        self._given.journal.over("proofs", "proofs-are-asked-for-again")
        self._backoff.reset()
        self._remember(node, now)

    def _remember(self, node: NodeState, now: datetime) -> None:
        name, about = node.identity.name, _about(node)
        before = self._asked.get(name)
        times = before.times + 1 if before and before.about == about else 1
        self._asked[name] = Asked(about, now, times)
        self._given.journal.say("prove", node=name, why=about[2] or "joined")


def _about(node: NodeState) -> tuple[str, str, str]:
    value = node.unproven.value if node.unproven else ""
    return node.identity.uid, node.boot_id, value
