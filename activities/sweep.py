"""The activity `sweep-candidates`: which idle nodes a sweep takes now. It changes nothing.

Which are due is said by `policies.proving`; whether they idle is looked for node by node, since a
list of all Pods of a large cluster costs more than it tells.
"""

from datetime import datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER
from activities.look import see
from activities.node_watch import NODES
from activities.proof_look import premise, working
from activities.waiting import PAGES_LIMIT
from fleet.errors import Refused, Transient
from fleet.node import NodeState, read_node
from fleet.outcome import Outcome
from fleet.ports import Kubernetes
from fleet.proof import Why
from fleet.proving import ProveRequest, ProveTask
from policies.proving import Candidates, due, in_turn, room
from policies.proving_terms import Sweep

LOOKS = 200
"""Nodes whose Pods are looked at in one sweep: a small list each."""
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
        try:
            return await self._candidates(cluster, sweep)
        except (*WORKS_LATER, Refused) as problem:
            raise ApplicationError(str(problem)[:1_000], type=type(problem).__name__) from problem

    async def _candidates(self, cluster: str, sweep: Sweep) -> Candidates:
        now, nodes = self._now(), await self._nodes(cluster)
        late, free = due(nodes, sweep, now), room(nodes, sweep)
        looked = in_turn(late, _turn(now, sweep), LOOKS) if free else ()
        tasks: list[ProveTask] = []
        for node in looked:
            if len(tasks) < MOST_TASKS and await self._idles(node, now):
                tasks.append(_task(node))
        return Candidates(tuple(tasks), free, len(late), len(looked))

    async def _nodes(self, cluster: str) -> list[NodeState]:
        """Page by page: of 14 KB a node little is kept."""
        nodes: list[NodeState] = []
        token = ""
        for _ in range(PAGES_LIMIT):
            page = await self._kubernetes.page(NODES, token=token)
            nodes += (read_node(each, cluster) for each in page.items)
            token = page.next_page
            if not token:
                return nodes
        raise Transient(f"there are more than {PAGES_LIMIT} pages of nodes")

    async def _idles(self, node: NodeState, now: datetime) -> bool:
        request = ProveRequest("look", _task(node), now, now)
        sight = await see(self._kubernetes, request.task.node)
        if isinstance(sight, Outcome):
            return False
        no = premise(sight.manifest, sight.node, request, self._now)
        return (no or await working(self._kubernetes, sight, request, self._now)) is None


def _task(node: NodeState) -> ProveTask:
    return ProveTask(node.identity, node.boot_id, Why.SWEEP)


def _turn(now: datetime, sweep: Sweep) -> int:
    """Which look this is, counted from the beginning of time: no memory is needed."""
    return int(now.timestamp() // sweep.look.total_seconds())
