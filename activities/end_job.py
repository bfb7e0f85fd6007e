"""End one job: its pods leave the node, and nobody else's do. Asked first where policy says so."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER, Progress, conduct
from activities.drain import SETTLE, Draining
from activities.endings import ended, succeeded
from activities.eviction_requests import EvictionRequests
from activities.evictions import Evictions
from activities.hit import hit_by
from activities.jobs import Job, job_of, sick_job
from activities.look import look
from activities.node_pods import pods_on
from activities.sick_gpus import sick_gpus
from fleet.errors import Refused
from fleet.node import Manifest
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.request import StepRequest

WHICH_JOB = "which-job"
"""PERMANENT: more than one job may be concerned, or a pod has none; the detail names them."""

WITHDRAW_SECONDS = 10.0
"""For taking wishes back at the end; what is not taken back is still only a wish."""
NAMED = 10


class EndJobActivities:
    """The activity `end-job`."""

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

    @activity.defn(name="end-job")
    async def end_job(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: no pod of the job is left here. PERMANENT: `which-job`, or as a drain's."""
        return await conduct(lambda progress: self._end_job(request, progress))

    async def _end_job(self, request: StepRequest, progress: Progress) -> Outcome:
        job = await self._job(request)
        if isinstance(job, Outcome):
            return job
        requests = EvictionRequests(self._kubernetes)
        asks = requests if request.ask_first and await requests.served() else None
        try:
            outcome = await self._leave(job, request, progress, asks)
        except asyncio.CancelledError:
            await _withdraw(requests)
            raise
        if outcome.kind is not OutcomeKind.SUCCEEDED:
            await _withdraw(requests)
        return outcome

    async def _job(self, request: StepRequest) -> Job | Outcome:
        """The job that the faults concern, or how the step ends without one."""
        sight = await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight
        pods = await pods_on(self._kubernetes, request.node.name)
        sick = await sick_gpus(self._kubernetes, request)
        hit = hit_by(request, sight.node, self._now())
        found = sick_job(pods, request.job_labels, sick, hit)
        if isinstance(found, Job):
            return found
        if found is None:
            what = "was hit" if hit.told else "may hold the GPU"
            return succeeded(f"no pod that {what} is left", sight.node)
        names = ", ".join(found[:NAMED]) + (" and more" if len(found) > NAMED else "")
        what = f"it cannot be told which of these the fault concerns: {names}"
        return ended(OutcomeKind.PERMANENT, WHICH_JOB, what, sight.node)

    async def _leave(
        self,
        job: Job,
        request: StepRequest,
        progress: Progress,
        asks: EvictionRequests | None,
    ) -> Outcome:
        def concerns(pod: Manifest) -> bool:
            return job_of(pod, request.job_labels) == job

        progress.say(f"job {job} is to leave")
        evictions = Evictions(self._kubernetes, self._now, self._jitter, asks)
        return await Draining(
            self._kubernetes, request, progress, self._now, self._settle, evictions, concerns
        ).run()


async def _withdraw(requests: EvictionRequests) -> None:
    with suppress(*WORKS_LATER, Refused, TimeoutError):
        async with asyncio.timeout(WITHDRAW_SECONDS):
            await requests.withdraw()
