"""Give a node back: judge once more that it is well, and undo exactly what the mark says we did.

The patch carries the resourceVersion of the read that was judged, so a fault that shows up in
between makes it fail. Foreign cordons and taints are never touched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import cancelled, ended, succeeded
from activities.evidence import own_faults, own_unknowns
from activities.look import agent_alive, boot_changed, hold_gone, identity_changed
from activities.node_change import change_node, mark_patch, taints_patch
from activities.offers import missing, withheld
from activities.pinned_pod import unfinished_pods
from fleet.mark import UNDO_CORDON, UNDO_TAINT, Mark, MarkState
from fleet.names import HOLD_TAINT
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.reason import FAULT_STANDS, MARK_REMOVED, PAUSED
from fleet.request import StepRequest

NOT_READY = "not-ready"
"""TRANSIENT: the node does not yet offer what it should, or cannot yet be judged."""


class ReleaseActivities:
    """The activity `release`."""

    def __init__(self, kubernetes: Kubernetes, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._now = now

    @activity.defn(name="release")
    async def release(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the hold is off and the mark says probation.

        CANCELLED `fault-stands`: it is still sick. TRANSIENT `not-ready`: not seen to be well.
        With `force` a person answers for that, and the hold comes off either way.
        """
        return await conduct(lambda progress: self._release(request, progress))

    async def _release(self, request: StepRequest, progress: Progress) -> Outcome:
        progress.say("judging whether the node is well")
        alive = await agent_alive(self._kubernetes, request.node.name, self._now())
        working = await unfinished_pods(self._kubernetes, request.node.name)

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            no = release_refusal(node, request)
            if no or node.mark is None:
                return no or cancelled(MARK_REMOVED, "there is no mark", node)
            ill = not_well(manifest, node, request, alive=alive, working=working)
            return ill if ill and not request.force else undo_patch(manifest, node.mark)

        return await change_node(self._kubernetes, request, judge)


def release_refusal(node: NodeState, request: StepRequest) -> Outcome | None:
    """Why there is nothing to release, be it that it is done."""
    no = identity_changed(node, request)
    if no:
        return no
    mark = node.mark
    if mark and mark.id == request.incident and mark.state is MarkState.PROBATION:
        return succeeded("the hold is off", node)
    return hold_gone(node, request)


def not_well(
    manifest: Manifest,
    node: NodeState,
    request: StepRequest,
    *,
    alive: bool,
    working: Sequence[str],
) -> Outcome | None:
    """None if the node is positively well, in the boot that was verified, and offers it all."""
    if node.pause is not None:
        return cancelled(PAUSED, f"paused by annotation: {node.pause}", node)
    faults = own_faults(node)
    if faults:
        return cancelled(FAULT_STANDS, f"the node says fault: {', '.join(faults)}", node)
    doubts = "; ".join(_doubts(manifest, node, alive=alive, working=working))
    return boot_changed(node, request) or (
        ended(OutcomeKind.TRANSIENT, NOT_READY, doubts, node) if doubts else None
    )


def undo_patch(manifest: Manifest, mark: Mark) -> Json:
    """Take back what the mark says we did, nothing else, and put the mark into probation."""
    done = replace(mark, state=MarkState.PROBATION, undo=())
    spec: Json = {}
    if UNDO_TAINT in mark.undo:
        spec |= taints_patch(manifest, without=HOLD_TAINT)
    if UNDO_CORDON in mark.undo:
        spec["unschedulable"] = None
    return {**mark_patch(done), **({"spec": spec} if spec else {})}


def _doubts(
    manifest: Manifest, node: NodeState, *, alive: bool, working: Sequence[str]
) -> Iterator[str]:
    if node.ready != "True":
        yield f"Ready is {node.ready}"
    if not alive:
        yield "the node's agent is silent"
    unknown = own_unknowns(node)
    if unknown:
        yield f"unknown: {', '.join(unknown)}"
    before = node.mark.offered if node.mark else ()
    less = (*missing(before, node.allocatable), *withheld(manifest))
    if less:
        yield f"offers less than it should: {', '.join(dict.fromkeys(less))}"
    if working:
        yield f"steps of ours still run there: {', '.join(working)}"
