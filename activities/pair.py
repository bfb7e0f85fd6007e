"""The activity `pair`: two nodes of a trial add up together, by a pinned Pod on each.

It looks again just before: both must still be kept for the trial, idle and in the same boot. A Pod
that never started, and one that met nobody, say nothing of the pair. It changes nothing but the
two Pods, which are named by the pair, so asking again finds them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ended
from activities.look import Sight, glance, see
from activities.node_step import step_request
from activities.pinned_pod import NoReport, PinnedPods
from activities.proof_look import as_step, premise, tainted, working
from activities.verify import UNVERIFIED
from fleet.check import PAIRS
from fleet.node import Manifest
from fleet.outcome import Outcome, OutcomeKind
from fleet.pair import PairPlace
from fleet.ports import Kubernetes
from fleet.proving import PairRequest, ProveRequest
from fleet.step import NodeStepReport

NO_ADDRESS = "no-address"
"""TRANSIENT: the Node of side 0 names no address at which it could be met."""
_ADDRESS = "InternalIP"


class PairActivities:
    """The activity `pair`."""

    def __init__(self, kubernetes: Kubernetes, pods: PinnedPods, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._pods = pods
        self._now = now

    @activity.defn(name="pair")
    async def pair(self, request: PairRequest) -> Outcome:
        """SUCCEEDED: both sides told what they saw; the findings say what. Anything else: nothing
        is known of the pair."""
        return await conduct(lambda progress: self._pair(request, progress))

    async def _pair(self, request: PairRequest, progress: Progress) -> Outcome:
        progress.say("looking whether both nodes may be tried")
        sides = [_side(request, number) for number in range(len(request.sides))]
        sights = [await self._look(each) for each in sides]
        no = next((each for each in sights if isinstance(each, Outcome)), None)
        if no:
            return no
        first = next(each for each in sights if isinstance(each, Sight))
        host = address_of(first.manifest)
        if not host:
            said = f"{first.node.identity.name} has no {_ADDRESS}"
            return ended(OutcomeKind.TRANSIENT, NO_ADDRESS, said, first.node)
        progress.say("a Pod on each of the two nodes: they meet and add up")
        reports = await self._both(request, sides, host)
        for side in sides:
            after = await glance(self._kubernetes, as_step(side))
            if isinstance(after, Outcome):
                return after
        return judge_pair(sides, reports)

    async def _look(self, side: ProveRequest) -> Sight | Outcome:
        sight = await see(self._kubernetes, side.task.node)
        if isinstance(sight, Outcome):
            return sight
        no = tainted(sight.node, side) or premise(sight.manifest, sight.node, side, self._now)
        return no or await working(self._kubernetes, sight, side, self._now) or sight

    async def _both(
        self, request: PairRequest, sides: Sequence[ProveRequest], host: str
    ) -> list[NodeStepReport | NoReport]:
        """Both to their ends, whatever becomes of one; raises what the port raised."""
        runs = [
            self._pods.run(
                replace(
                    step_request(as_step(side)),
                    pair=PairPlace(number, host, request.port, request.operation, request.seconds),
                ),
                side.task.node.name,
            )
            for number, side in enumerate(sides)
        ]
        told = await asyncio.gather(*runs, return_exceptions=True)
        for each in told:
            if isinstance(each, BaseException):
                raise each
        return [each for each in told if not isinstance(each, BaseException)]


def judge_pair(
    sides: Sequence[ProveRequest], reports: Sequence[NodeStepReport | NoReport]
) -> Outcome:
    """What both sides said of the pair, side 0 first; nothing where one of them said nothing."""
    findings = []
    for side, report in zip(sides, reports, strict=True):
        name = side.task.node.name
        if isinstance(report, NoReport):
            said = f"{name}: {report.trouble}: {report.detail}"
            return Outcome(OutcomeKind.TRANSIENT, UNVERIFIED, said)
        mine = [each for each in report.findings if each.check == PAIRS]
        if report.boot_id != side.task.boot_id or len(mine) != 1:
            codes = " ".join(dict.fromkeys(each.code for each in mine))
            said = f"{name}: {report.result} {report.reason} {codes}, in boot {report.boot_id}"
            return Outcome(OutcomeKind.TRANSIENT, UNVERIFIED, said)
        findings += mine
    said = "; ".join(each.code or each.evidence for each in findings)
    return Outcome(OutcomeKind.SUCCEEDED, detail=said, findings=tuple(findings))


def address_of(manifest: Manifest) -> str:
    """Where the Node's host network is reached, empty where it does not say."""
    addresses = (manifest.get("status") or {}).get("addresses") or ()
    return next((str(each["address"]) for each in addresses if each["type"] == _ADDRESS), "")


def _side(request: PairRequest, number: int) -> ProveRequest:
    return ProveRequest(
        operation=f"{request.operation}-{number}",
        task=request.sides[number],
        since=request.since,
        deadline=request.deadline,
        checks=(PAIRS,),
    )
