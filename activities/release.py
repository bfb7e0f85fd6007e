"""Give a node back: judge once more that it is well, undo exactly what the mark says we did, and
pay the lease back with it.

The patch carries the resourceVersion of the read that was judged, so a fault that shows up in
between makes it fail. Foreign cordons and taints are never touched.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER, Progress, conduct
from activities.endings import cancelled, ended, succeeded
from activities.evidence import standing
from activities.look import Sight, agent_alive, boot_changed, hold_gone, identity_changed, see
from activities.node_change import change_node, mark_patch, merged
from activities.node_watch import wait_for_node
from activities.offers import missing, withheld
from activities.pinned_pod import step_pods, tidy, unfinished
from activities.undo import undo_changes
from fleet.errors import Refused
from fleet.finding import Verdict
from fleet.mark import Mark, MarkState
from fleet.names import incident_workflow_id
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.reason import FAULT_STANDS, MARK_REMOVED, PAUSED
from fleet.request import StepRequest
from policies.own_conditions import read_own

NOT_READY = "not-ready"
"""TRANSIENT: the node does not yet offer what it should, or cannot yet be judged."""

PATIENCE = timedelta(minutes=1)
"""How long a repaired node may take to say so: the agent patches once a second, plugins register
again after a reset."""

GiveBack = Callable[[str], Awaitable[None]]
"""Gives back the lease, or the ask, of an incident's workflow; raises what the budget raises."""

_log = logging.getLogger(__name__)


class ReleaseActivities:
    """The activity `release`."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        give_back: GiveBack,
        now: Clock = utc_now,
        *,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._kubernetes = kubernetes
        self._give_back = give_back
        self._now = now
        self._patience = patience

    @activity.defn(name="release")
    async def release(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the hold is off and the mark says probation.

        CANCELLED `fault-stands`: it is still sick. TRANSIENT `not-ready`: not seen to be well.
        With `force` a person answers for that, and the hold comes off either way.
        """
        return await conduct(lambda progress: self._release_and_repay(request, progress))

    async def _release_and_repay(self, request: StepRequest, progress: Progress) -> Outcome:
        """A lease that cannot be given back now is left to the step `give-back`."""
        outcome = await self._release(request, progress)
        if not request.lent or outcome.kind is not OutcomeKind.SUCCEEDED:
            return outcome
        progress.say("giving the lease back")
        node = request.node
        try:
            await self._give_back(incident_workflow_id(node.cluster, node.name, node.machine))
        except (*WORKS_LATER, Refused) as problem:
            _log.warning("what=lease-kept node=%s why=%r", node.name, str(problem))
            return outcome
        return replace(outcome, gave_back=True)

    async def _release(self, request: StepRequest, progress: Progress) -> Outcome:
        progress.say("waiting for the node to say that it is well")

        def refused(sight: Sight) -> bool:
            return request.force or release_refusal(sight.node, request) is not None

        witness, sight = await until_well(
            self._kubernetes, request, refused, self._now, self._patience
        )
        progress.say("judging whether the node is well")

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            no = release_refusal(node, request)
            if no or node.mark is None:
                return no or cancelled(MARK_REMOVED, "there is no mark", node)
            ill = not_well(Sight(manifest, node), request, witness)
            return ill if ill and not request.force else undo_patch(manifest, node.mark)

        return await change_node(self._kubernetes, request, judge, sight)


@dataclass(frozen=True, slots=True)
class Witness:
    """What is known besides the Node: does its agent live, which steps of ours still run."""

    at: datetime
    agent_alive: bool
    working: tuple[str, ...] = ()


async def witness_of(kubernetes: Kubernetes, node: str, now: datetime) -> Witness:
    """Ask for what the Node itself does not say; steps that are long over are tidied away."""
    alive = await agent_alive(kubernetes, node, now)
    pods = await step_pods(kubernetes, node)
    await tidy(kubernetes, pods)
    return Witness(now, alive, unfinished(pods))


async def until_well(
    kubernetes: Kubernetes,
    request: StepRequest,
    refused: Callable[[Sight], bool],
    now: Clock,
    patience: timedelta,
) -> tuple[Witness, Sight | None]:
    """Give the agent and the device plugin the time that they need to see that a node is well.

    Returns what is then to be judged, and the node as read with it, None where it is to be read
    anew: sooner where `refused` says that waiting is of no use, and by the request's deadline.
    """
    witness = await witness_of(kubernetes, request.node.name, now())

    def over(seen: Sight | None) -> bool | None:
        done = seen is None or refused(seen) or not_well(seen, request, witness) is None
        return True if done else None

    sight = await see(kubernetes, request.node)
    if isinstance(sight, Outcome):
        return witness, None
    if over(sight):
        return witness, sight
    until = min(now() + patience, request.deadline)
    await wait_for_node(kubernetes, request.node, over, until=until, now=now, start=sight)
    return await witness_of(kubernetes, request.node.name, now()), None


def release_refusal(node: NodeState, request: StepRequest) -> Outcome | None:
    """Why there is nothing to release, be it that it is done."""
    no = identity_changed(node, request)
    if no:
        return no
    mark = node.mark
    if mark and mark.id == request.incident and mark.state is MarkState.PROBATION:
        return succeeded("the hold is off", node)
    return hold_gone(node, request)


def not_well(sight: Sight, request: StepRequest, witness: Witness) -> Outcome | None:
    """None if the node is positively well, in the boot that was verified, and offers it all."""
    node = sight.node
    if node.pause is not None:
        return cancelled(PAUSED, f"paused by annotation: {node.pause}", node)
    faults = _faults(node, request, witness)
    if faults:
        return cancelled(FAULT_STANDS, f"still there: {', '.join(faults)}", node)
    doubts = "; ".join(_doubts(sight, request, witness))
    return boot_changed(node, request) or (
        ended(OutcomeKind.TRANSIENT, NOT_READY, doubts, node) if doubts else None
    )


def undo_patch(manifest: Manifest, mark: Mark) -> Json:
    """Take back what the mark says we did, nothing else, and put the mark into probation."""
    done = replace(mark, state=MarkState.PROBATION, undo=())
    return merged(mark_patch(done), undo_changes(manifest, mark.undo))


def _faults(node: NodeState, request: StepRequest, witness: Witness) -> tuple[str, ...]:
    """Whatever our own conditions say, and what brought the incident about, be it another's."""
    said = read_own(node, witness.at).faults
    own = [each.key for each in said if each.name not in request.harmless]
    asked = [
        each.key
        for each in request.faults
        if standing(each, node, witness.at, agent_alive=witness.agent_alive) is Verdict.FAULT
    ]
    return tuple(dict.fromkeys((*own, *asked)))


def _doubts(sight: Sight, request: StepRequest, witness: Witness) -> Iterator[str]:
    node = sight.node
    if node.ready != "True":
        yield f"Ready is {node.ready}"
    if not witness.agent_alive:
        yield "the node's agent is silent"
    yield from read_own(node, witness.at).unknown
    for fault in request.faults:
        verdict = standing(fault, node, witness.at, agent_alive=witness.agent_alive)
        if verdict is Verdict.UNKNOWN:
            yield f"{fault.key} is unknown"
    before = node.mark.offered if node.mark else ()
    less = (*missing(before, node.allocatable), *withheld(sight.manifest))
    if less:
        yield f"offers less than it should: {', '.join(dict.fromkeys(less))}"
    if witness.working:
        yield f"steps of ours still run there: {', '.join(witness.working)}"
