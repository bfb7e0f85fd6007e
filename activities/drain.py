"""Empty a node by the Eviction API, within an absolute deadline, from cluster state alone.

Rounds of look, list, evict what is due, watch until all is gone or something is to be done. Nothing
that decides is remembered between rounds, so a worker that dies loses only how often each Pod said
no. What each Pod is to a drain is `pods.py`; what an answer means is `eviction.py`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ended, succeeded
from activities.evictions import LONGEST_GRACE, Evictions
from activities.look import look
from activities.node_pods import PODS, bound_to
from activities.pods import (
    INTERRUPTED,
    WAITED,
    DrainTerms,
    PlannedPod,
    PodClass,
    daemon_set_of,
    plan_drain,
    plan_text,
)
from activities.sick_gpus import SickGpus, sick_gpus, told
from activities.waiting import Collection, list_all
from fleet.errors import NotFound
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.reason import DEADLINE, NEEDS_APPROVAL
from fleet.request import StepRequest
from fleet.step import Step

BREATH = timedelta(milliseconds=200)
"""Between rounds at least: however many changes come, the API server is not asked in a loop."""

SLICE = timedelta(minutes=1)
"""How long one wait lasts at most before the node is looked at again: that a hold is gone is told,
too, and nothing is evicted without a look."""

SETTLE = timedelta(seconds=5)
"""How long after its first look a drain still counts on Pods: a scheduler that has not seen the
hold may bind them."""

KUBELET_MARGIN = timedelta(seconds=30)
"""What a kubelet needs beyond the grace to report that a Pod is gone."""

PLAN_LIMIT = 20_000
"""Characters of the plan in a heartbeat: some two hundred pods, more than a node runs."""

NAMED = 10
"""Pods named in a progress line or a detail; the rest is counted."""


class DrainActivities:
    """The activity `drain`."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        now: Clock = utc_now,
        *,
        settle: timedelta = SETTLE,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._kubernetes = kubernetes
        self._now = now
        self._settle = settle
        self._jitter = jitter

    @activity.defn(name="drain")
    async def drain(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: what must be gone is gone. PERMANENT: `needs-approval` or `deadline`.

        CANCELLED and SUPERSEDED as every step. The detail names what is in the way.
        """
        return await conduct(lambda progress: self._run(request, progress))

    async def _run(self, request: StepRequest, progress: Progress) -> Outcome:
        evictions = Evictions(self._kubernetes, self._now, self._jitter)
        return await Draining(
            self._kubernetes, request, progress, self._now, self._settle, evictions
        ).run()


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round saw: the node, its Pods, which it follows, and the plan for them."""

    node: NodeState
    terms: DrainTerms
    pods: Collection
    plan: tuple[PlannedPod, ...]

    def of(self, *kinds: PodClass) -> tuple[PlannedPod, ...]:
        return tuple(each for each in self.plan if each.kind in kinds)


class Draining:
    """The rounds of one drain; `concerns` narrows it to some of the node's Pods."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        request: StepRequest,
        progress: Progress,
        now: Clock,
        settle: timedelta,
        evictions: Evictions,
        concerns: Callable[[Manifest], bool] = lambda _: True,
    ) -> None:
        self._concerns = concerns
        self._sick: SickGpus | None = None
        self._began: datetime | None = None
        self._kubernetes = kubernetes
        self._request = request
        self._progress = progress
        self._now = now
        self._settle = settle
        self._evictions = evictions
        self._daemon_sets: dict[str, bool] = {}
        self._query = bound_to(request.node.name)

    async def run(self) -> Outcome:
        """Rounds until what must be gone is gone, or until there is a reason to stop."""
        while True:
            seen = await self._look()
            if isinstance(seen, Outcome):
                return seen
            self._tell(seen)
            end = self._end(seen)
            if end:
                return end
            await self._evict(seen)
            if await self._empties(seen):
                left = self._plan(seen.pods.objects or (), seen)
                return succeeded(self._interrupted(left), seen.node)

    def _end(self, seen: _Round) -> Outcome | None:
        """Refused before anything is evicted, or out of time; else None."""
        refused, waiting = seen.of(PodClass.REFUSED), seen.of(*WAITED)
        if refused:
            return ended(OutcomeKind.PERMANENT, NEEDS_APPROVAL, self._name(refused), seen.node)
        if waiting and self._now() >= self._last_moment():
            return ended(OutcomeKind.PERMANENT, DEADLINE, self._name(waiting), seen.node)
        return None

    async def _look(self) -> _Round | Outcome:
        """Look again, then read the Pods: no eviction follows a look that is older than a round."""
        sight = await look(self._kubernetes, self._request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight
        listing = await list_all(self._kubernetes, PODS, self._query)
        pods = [each for each in listing.objects if self._concerns(each)]
        lost = [uid for pod in pods if (uid := await self._lost_daemon_set(pod))]
        spared = await self._spared(pods)
        terms = DrainTerms.of(sight.manifest, sight.node, self._request, lost, spared)
        followed = Collection(self._kubernetes, PODS, self._query, listing)
        return _Round(sight.node, terms, followed, plan_drain(pods, terms, self._now()))

    async def _spared(self, pods: Sequence[Manifest]) -> frozenset[str]:
        """Before a reset: Pods that surely hold other GPUs than the sick ones."""
        if self._request.makes_way_for is not Step.RESET_GPU:
            return frozenset()
        if self._sick is None and told(pods):
            self._sick = await sick_gpus(self._kubernetes, self._request)
        return self._sick.spared(pods) if self._sick else frozenset()

    def _tell(self, seen: _Round) -> None:
        """The whole plan once, before anything is done about it."""
        if self._began is None:
            self._began = self._now()
            self._progress.say(f"plan: {plan_text(seen.plan)}"[:PLAN_LIMIT])

    def _plan(self, pods: Sequence[Json], seen: _Round) -> tuple[PlannedPod, ...]:
        concerned = (each for each in pods if self._concerns(each))
        return plan_drain(concerned, seen.terms, self._now())

    async def _lost_daemon_set(self, pod: Manifest) -> str | None:
        """The UID of the Pod's DaemonSet if that is gone; each is asked for once a drain."""
        owner = daemon_set_of(pod)
        if owner is None:
            return None
        uid = str(owner["uid"])
        if uid not in self._daemon_sets:
            where = f"/apis/apps/v1/namespaces/{pod['metadata']['namespace']}/daemonsets"
            try:
                found = await self._kubernetes.get(f"{where}/{owner['name']}")
                self._daemon_sets[uid] = found["metadata"]["uid"] == uid
            except NotFound:
                self._daemon_sets[uid] = False
        return None if self._daemon_sets[uid] else uid

    async def _evict(self, seen: _Round) -> None:
        if self._now() < self._request.deadline:
            await self._evictions.ask(seen.of(PodClass.EVICT))
        elif self._request.force:
            await self._evictions.delete(seen.of(PodClass.EVICT, PodClass.PROTECTED))

    def _say(self, plan: Sequence[PlannedPod]) -> None:
        waiting = [each for each in plan if each.kind in WAITED]
        words = f"waiting for {len(waiting)}: {self._name(waiting)}" if waiting else "empty"
        self._progress.say(f"{words}; {self._interrupted(plan)}")

    async def _empties(self, seen: _Round) -> bool:
        """Whether all that is waited for leaves, and nothing comes until every scheduler has seen
        the hold, before there is something to do: a Pod that was not asked, an eviction that is due
        again, or the end of the slice.
        """
        assert self._began, "a round was told of before its end"
        known = _to_do(seen.plan)

        def more(pods: Sequence[Json]) -> bool | None:
            plan = self._plan(pods, seen)
            self._say(plan)
            return None if _to_do(plan) <= known else False

        def gone(pods: Sequence[Json]) -> bool | None:
            waited = any(each.kind in WAITED for each in self._plan(pods, seen))
            return more(pods) if waited else True

        settled = self._began + self._settle
        first = min(settled, self._next_moment(seen)) if seen.of(*WAITED) else settled
        to_do = await seen.pods.wait(more, until=first, now=self._now) is False
        if to_do or self._now() < settled:
            return False
        until = self._next_moment(seen)
        return await seen.pods.wait(gone, until=until, now=self._now) is True

    def _next_moment(self, seen: _Round) -> datetime:
        now = self._now()
        dues = (self._evictions.due(each.uid) for each in seen.of(PodClass.EVICT))
        limits = (at for at in (self._request.deadline, self._last_moment()) if at > now)
        return max(now + BREATH, min((now + SLICE, *dues, *limits)))

    def _last_moment(self) -> datetime:
        """The deadline; where force goes on then, so much later as the graces may take."""
        if not self._request.force:
            return self._request.deadline
        return self._request.deadline + timedelta(seconds=LONGEST_GRACE) + KUBELET_MARGIN

    def _interrupted(self, plan: Sequence[PlannedPod]) -> str:
        pods = [each for each in plan if each.kind in (*INTERRUPTED, PodClass.STOPPED)]
        return f"will be interrupted: {self._name(pods)}" if pods else "nothing stays"

    def _name(self, pods: Sequence[PlannedPod]) -> str:
        more = f" and {len(pods) - NAMED} more" if len(pods) > NAMED else ""
        return ", ".join(self._one(each) for each in pods[:NAMED]) + more

    def _one(self, pod: PlannedPod) -> str:
        why = self._evictions.why(pod.uid) if pod.kind is PodClass.EVICT else ""
        return f"{pod.namespace}/{pod.name} (blocked: {why})" if why else str(pod)


def _to_do(plan: Sequence[PlannedPod]) -> frozenset[tuple[str, PodClass]]:
    """What is waited for and does not leave by itself."""
    leaving = (PodClass.TERMINATING,)
    return frozenset((e.uid, e.kind) for e in plan if e.kind in WAITED and e.kind not in leaving)
