"""The activities `sweep-candidates` and `pair-candidates`: which idle nodes a sweep, or a trial in
pairs, takes now. They change nothing.

Which are due is said by `policies.proving` and `policies.flocks`; whether they idle is looked for
node by node, since a list of all Pods of a large cluster costs more than it tells.
"""

from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER
from activities.look import see
from activities.node_watch import NODES
from activities.proof_look import premise, working
from activities.waiting import pages
from fleet.errors import Refused
from fleet.node import NodeState, read_node
from fleet.outcome import Outcome
from fleet.ports import Kubernetes
from fleet.proof import Why
from fleet.proving import ProveRequest, ProveTask
from policies.flocks import (
    LEAST,
    Flocks,
    due_for_pairs,
    flock_of,
    flocks,
    room_for_pairs,
    task_in_pairs,
)
from policies.pairs_terms import Pairs
from policies.proving import Candidates, due, in_turn, room
from policies.proving_terms import Sweep
from policies.scopes import ScopeLabels

LOOKS = 200
"""Nodes whose Pods are looked at in one sweep: a small list each."""
T = TypeVar("T")
MOST_TASKS = 100
"""Nodes that one sweep proves at most; each is a workflow of its own in its history."""


class SweepActivities:
    """Reads nodes and Pods through the Kubernetes port."""

    def __init__(self, kubernetes: Kubernetes, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._now = now

    @activity.defn(name="sweep-candidates")
    async def candidates(self, cluster: str, sweep: Sweep) -> Candidates:
        """Look once. Raises ApplicationError for Temporal to repeat where a server is away."""
        return await _asked_again(self._candidates(cluster, sweep))

    @activity.defn(name="pair-candidates")
    async def pair_candidates(self, cluster: str, pairs: Pairs, scopes: ScopeLabels) -> Flocks:
        """The same for a trial in pairs."""
        return await _asked_again(self._flocks(cluster, pairs, scopes))

    async def _candidates(self, cluster: str, sweep: Sweep) -> Candidates:
        now, nodes = self._now(), await self._nodes(cluster)
        late, free = due(nodes, sweep, now), room(nodes, sweep)
        looked = in_turn(late, _turn(now, sweep.look), LOOKS) if free else ()
        tasks: list[ProveTask] = []
        for node in looked:
            if len(tasks) < MOST_TASKS and await self._idles(node, now):
                tasks.append(_task(node))
        return Candidates(tuple(tasks), free, len(late), len(looked))

    async def _nodes(self, cluster: str) -> list[NodeState]:
        """Page by page: of 14 KB a node little is kept."""
        nodes: list[NodeState] = []
        async for page in pages(self._kubernetes, NODES):
            nodes += (read_node(each, cluster) for each in page.items)
        return nodes

    async def _flocks(self, cluster: str, pairs: Pairs, scopes: ScopeLabels) -> Flocks:
        now, nodes = self._now(), await self._nodes(cluster)
        (late, partners), free = due_for_pairs(nodes, pairs, now), room_for_pairs(nodes, pairs, now)
        looked = in_turn(late, _turn(now, pairs.look), LOOKS) if free >= LEAST else ()
        found: dict[str, list[ProveTask]] = {}
        for node in looked:
            if await self._idles(node, now):
                found.setdefault(flock_of(node, pairs, scopes), []).append(task_in_pairs(node))
        await self._add_partners(
            found, [(flock_of(each, pairs, scopes), each) for each in partners]
        )
        return Flocks(flocks(found), free, len(late), len(looked))

    async def _add_partners(
        self, found: dict[str, list[ProveTask]], partners: Sequence[tuple[str, NodeState]]
    ) -> None:
        """Where too few are due to tell who is odd, idle ones that were tried lately help; one more
        than is needed, since work may come."""
        looks, now = 0, self._now()
        for name, node in partners:
            short = name in found and len(found[name]) <= LEAST
            if short and looks < LOOKS:
                looks += 1
                if await self._idles(node, now):
                    found[name].append(task_in_pairs(node))

    async def _idles(self, node: NodeState, now: datetime) -> bool:
        request = ProveRequest("look", _task(node), now, now)
        sight = await see(self._kubernetes, request.task.node)
        if isinstance(sight, Outcome):
            return False
        no = premise(sight.manifest, sight.node, request, self._now)
        return (no or await working(self._kubernetes, sight, request, self._now)) is None


def _task(node: NodeState) -> ProveTask:
    return ProveTask(node.identity, node.boot_id, Why.SWEEP)


def _turn(now: datetime, look: timedelta) -> int:
    """Which look this is, counted from the beginning of time: no memory is needed."""
    return int(now.timestamp() // look.total_seconds())


async def _asked_again(call: Awaitable[T]) -> T:
    """What Temporal is to repeat, as it wants to hear it."""
    try:
        return await call
    except (*WORKS_LATER, Refused) as problem:
        raise ApplicationError(str(problem)[:1_000], type=type(problem).__name__) from problem
