"""Prove that a node is well: let it be quiet for a while, then run its checks on the node itself.

A verify that could not run, or during which the node booted or changed, proves nothing: it is
transient, never passed and never failed.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ended, node_gone, succeeded
from activities.look import Sight, glance, look, refusal
from activities.node_step import step_request
from activities.node_watch import wait_for_node
from activities.operands import Operands
from activities.pinned_pod import NoReport, PinnedPods
from activities.undo import paused_labels
from fleet.finding import Verdict
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.request import StepRequest
from fleet.step import NodeStepReport, NodeStepResult

FAULT_FOUND = "fault-found"
"""PERMANENT: a check on the node saw a fault; the findings say which."""
UNVERIFIED = "unverified"
"""TRANSIENT: a check could not tell, or the verify did not come to an end."""
UNTOLD_LIMIT = 4
"""Codes named of checks that could not tell; the findings hold them all."""


class VerifyActivities:
    """The activity `verify`."""

    def __init__(self, kubernetes: Kubernetes, pods: PinnedPods, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._pods = pods
        self._now = now

    @activity.defn(name="verify")
    async def verify(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: every check passed. PERMANENT `fault-found`. TRANSIENT `unverified`."""
        return await conduct(lambda progress: self._verify(request, progress))

    async def _verify(self, request: StepRequest, progress: Progress) -> Outcome:
        sight = await look(self._kubernetes, request, self._now, premise=False)
        if isinstance(sight, Outcome):
            return sight
        if sight.node.mark and paused_labels(sight.node.mark):  # a reset that did not end well
            await Operands(self._kubernetes, self._now).restore(request, sight)
        if not await self._pods.begun(request.operation):
            no = await self._settle(sight, request, progress)
            if no:
                return no
        progress.say("running the checks on the node")
        report = await self._pods.run(step_request(request), request.node.name)
        after = await glance(self._kubernetes, request)
        if isinstance(after, Outcome):
            return after
        return judge_verify(report, request, after.node)

    async def _settle(
        self, sight: Sight, request: StepRequest, progress: Progress
    ) -> Outcome | None:
        """Wait until the node is Ready and then quiet for as long as asked; or say why not."""
        if sight.node.ready == "True" and not request.settle:
            return None
        progress.say("waiting for the node to be Ready")
        seen = await self._watched(sight, request, _is_ready, request.deadline)
        if seen is None or seen.node.ready != "True":
            detail = "the node did not become Ready in time"
            return ended(OutcomeKind.TRANSIENT, UNVERIFIED, detail)
        progress.say(f"letting it settle for {request.settle}")
        until = min(self._now() + request.settle, request.deadline)
        seen = await self._watched(seen, request, _has_booted, until)
        return refusal(seen.manifest, seen.node, request) if seen else node_gone(request.node.name)

    async def _watched(
        self,
        sight: Sight,
        request: StepRequest,
        enough: Callable[[NodeState, StepRequest], bool],
        until: datetime,
    ) -> Sight | None:
        """The node once it is as asked for, or another, or when time is up; None if it is gone."""
        last: Sight | None = sight

        def judge(seen: Sight | None) -> bool | None:
            nonlocal last
            last = seen
            other = seen is None or seen.node.identity.uid != request.node.uid
            return True if other or (seen and enough(seen.node, request)) else None

        await wait_for_node(
            self._kubernetes, request.node, judge, until=until, now=self._now, start=sight
        )
        return last


def _is_ready(node: NodeState, request: StepRequest) -> bool:
    del request
    return node.ready == "True"


def _has_booted(node: NodeState, request: StepRequest) -> bool:
    """There is nothing left to settle then."""
    return node.boot_id != request.boot_id


def judge_verify(
    report: NodeStepReport | NoReport, request: StepRequest, node: NodeState
) -> Outcome:
    """What the node's own report proves, by its findings first and its word second."""
    if isinstance(report, NoReport):
        return _unverified(f"{report.trouble}: {report.detail}", node)
    if report.boot_id != request.boot_id:
        return _unverified(f"it ran in boot {report.boot_id}, not {request.boot_id}", node)
    verdicts = {each.verdict for each in report.findings}
    if Verdict.FAULT in verdicts:
        what = report.reason or "a check saw a fault"
        outcome = ended(OutcomeKind.PERMANENT, FAULT_FOUND, what, node)
    elif verdicts != {Verdict.OK} or report.result is not NodeStepResult.DONE:
        outcome = _unverified(_untold(report) or f"the node says {report.result}", node)
    else:
        outcome = succeeded(f"passed: {', '.join(request.checks)}", node)
    return replace(outcome, findings=report.findings)


def _untold(report: NodeStepReport) -> str:
    """Why it could not tell: the codes of the checks that could not, which say what is missing."""
    codes = (each.code for each in report.findings if each.verdict is Verdict.UNKNOWN)
    named = ", ".join(list(dict.fromkeys(filter(None, codes)))[:UNTOLD_LIMIT])
    return f"{report.reason}: {named}" if named else report.reason


def _unverified(detail: str, node: NodeState) -> Outcome:
    return ended(OutcomeKind.TRANSIENT, UNVERIFIED, detail, node)
