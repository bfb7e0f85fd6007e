"""Reset a GPU, or all of them, from a Pod on the node, once nothing holds it any more.

The drain made way; here it is looked at again, since a reset under a running process does harm. A
card that is in use is no verdict about the hardware.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ended
from activities.look import Sight, glance, look
from activities.node_pods import pods_on
from activities.node_step import repair_outcome, step_request
from activities.operands import Operands
from activities.pinned_pod import NoReport, PinnedPods
from activities.pods import WAITED, DrainTerms, PlannedPod, may_hold_gpu, plan_drain
from activities.sick_gpus import sick_gpus, told
from fleet.node import Manifest
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.request import StepRequest
from fleet.step import NodeStepReport, Step

GPU_IN_USE = "gpu-in-use"
"""PERMANENT: Pods that may hold a GPU are still there; the detail names them."""
IN_USE = "in-use"
"""What the node reports when a process still held the GPU: no verdict, and worth one more try."""


class ResetGpuActivities:
    """The activity `reset-gpu`."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        pods: PinnedPods,
        now: Clock = utc_now,
        *,
        operands: Operands | None = None,
    ) -> None:
        self._operands = operands or Operands(kubernetes, now)
        self._kubernetes = kubernetes
        self._pods = pods
        self._now = now

    @activity.defn(name="reset-gpu")
    async def reset_gpu(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the reset ran, which proves nothing yet. PERMANENT: it did not.

        AMBIGUOUS: its Pod may have run and nobody saw how it ended.
        """
        return await conduct(lambda progress: self._reset(request, progress))

    async def _reset(self, request: StepRequest, progress: Progress) -> Outcome:
        """Operands leave before the Pod acts and come back when it has: on every way out.

        While the Pod may be acting they stay away: who takes the step up again, a verify or the
        release gives them back, by the mark.
        """
        try:
            outcome, seen = await self._without_operands(request, progress)
        except asyncio.CancelledError:
            if not progress.acted:
                await self._operands.restore(request)
            raise
        await self._operands.restore(request, seen)
        return outcome

    async def _without_operands(
        self, request: StepRequest, progress: Progress
    ) -> tuple[Outcome, Sight | None]:
        """How it ended, with the node as it was then read. One that has begun is seen to its end,
        whatever came since.
        """
        if not await self._pods.begun(request.operation):
            no = await self._make_way(request, progress)
            if no:
                return no, None
        report = await self._run(request, progress)
        if isinstance(report, NodeStepReport) and report.reason == IN_USE:
            again = replace(request, operation=f"{request.operation}-again")
            report = await self._run(again, progress)
        after = await glance(self._kubernetes, request)
        if isinstance(after, Outcome):
            return after, None
        return repair_outcome(report, request, after.node), after

    async def _make_way(self, request: StepRequest, progress: Progress) -> Outcome | None:
        """Have operands leave, or say why it must not begin."""
        sight = await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight
        pods = await pods_on(self._kubernetes, request.node.name)
        holders = await self._holders(sight, pods, request)
        if holders:
            names = ", ".join(str(each) for each in holders)
            return ended(OutcomeKind.PERMANENT, GPU_IN_USE, names, sight.node)
        progress.say("operands that hold GPUs leave")
        paused = await self._operands.pause(request, sight, pods)
        return None if paused.kind is OutcomeKind.SUCCEEDED else paused

    async def _run(self, request: StepRequest, progress: Progress) -> NodeStepReport | NoReport:
        def asked() -> None:
            progress.acted = True
            progress.say("the reset runs on the node")

        return await self._pods.run(step_request(request), request.node.name, asked=asked)

    async def _holders(
        self, sight: Sight, pods: Sequence[Manifest], request: StepRequest
    ) -> tuple[PlannedPod, ...]:
        """Pods that the drain should have waited for and that may hold a GPU."""
        waits = replace(request, makes_way_for=Step.RESET_GPU)
        sick = await sick_gpus(self._kubernetes, request) if told(pods) else None
        spared = sick.spared(pods) if sick else ()
        terms = DrainTerms.of(sight.manifest, sight.node, waits, (), spared)
        plan = plan_drain((pod for pod in pods if may_hold_gpu(pod)), terms, self._now())
        return tuple(each for each in plan if each.kind in WAITED)
