"""Take a held node up: its mark goes from pending to owned, or the step says who was faster.

The watcher put the hold on. A hold that is gone was taken off by a person and is put on again only
where a person says so (`force`); one that we took off ourselves, in probation, is.
"""

from dataclasses import replace
from datetime import datetime

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import conduct
from activities.endings import cancelled, succeeded
from activities.look import held, hold_gone, identity_changed
from activities.node_change import change_node, mark_patch, merged, taints_patch
from activities.node_claims import VETO, karpenters
from activities.offers import offered
from activities.undo import annotation_entry
from fleet.fault import FaultName
from fleet.mark import UNDO_TAINT, Mark, MarkState
from fleet.names import HOLD_EFFECT, HOLD_TAINT
from fleet.node import Manifest, NodeState, Taint
from fleet.outcome import Outcome
from fleet.ports import Json, Kubernetes
from fleet.reason import MARK_REMOVED, UNMANAGED
from fleet.request import StepRequest


class HoldActivities:
    """The activity `hold`."""

    def __init__(self, kubernetes: Kubernetes, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._now = now

    @activity.defn(name="hold")
    async def hold(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the node is held and the mark is ours. CANCELLED: it is not, and why."""

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            return judge_hold(manifest, node, request, self._now())

        return await conduct(lambda _: change_node(self._kubernetes, request, judge))


def judge_hold(
    manifest: Manifest, node: NodeState, request: StepRequest, now: datetime
) -> Json | Outcome:
    """The patch that takes the node up, or how the step ends."""
    no = identity_changed(node, request)
    if no:
        return no
    if not node.managed:
        return cancelled(UNMANAGED, "people opted the node out by label", node)
    if node.mark is None and not node.mark_problem:
        return _adopt(manifest, node, request, now)
    if _is_back(node, request):
        assert node.mark, "what is back was marked by the watcher"
        return _taken_up(replace(node.mark, id=request.incident), manifest)
    mine = node.mark if node.mark and node.mark.id == request.incident else None
    if mine and (mine.state is MarkState.PROBATION or (request.force and not held(node))):
        return _take_up_again(manifest, node, mine, request)
    gone = hold_gone(node, request)
    if gone or node.mark is None:
        return gone or cancelled(MARK_REMOVED, node.mark_problem, node)
    if node.mark.state is MarkState.OWNED:
        return succeeded(f"held by {request.incident}", node)
    return _taken_up(node.mark, manifest)


def _is_back(node: NodeState, request: StepRequest) -> bool:
    """The watcher held a new Node object of our machine under an id of its own: our incident."""
    mark = node.mark
    if mark is None or not request.force or mark.state is not MarkState.PENDING:
        return False
    return mark.id != request.incident and held(node) and mark.uid == node.identity.uid


def _adopt(
    manifest: Manifest, node: NodeState, request: StepRequest, now: datetime
) -> Json | Outcome:
    """A hold without a mark is ours by its key: somebody lost the mark, not the hold."""
    if node.hold is None:
        return cancelled(MARK_REMOVED, "there is neither hold nor mark", node)
    mark = Mark(
        id=request.incident,
        machine=node.identity.machine,
        uid=node.identity.uid,
        state=MarkState.OWNED,
        opened=now,
        undo=(UNDO_TAINT,),
    )
    return _taken_up(mark, manifest)


def _take_up_again(
    manifest: Manifest, node: NodeState, mark: Mark, request: StepRequest
) -> Json | Outcome:
    """A recurrence in probation, or a person's word: the hold goes on again, in one patch.

    A fault that has ended since the person took it off is no reason to leave the mark behind.
    """
    if held(node):
        return _taken_up(mark, manifest)
    undo = (*(each for each in mark.undo if each != UNDO_TAINT), UNDO_TAINT)
    fault = request.faults[0].name if request.faults else FaultName.UNKNOWN_CODE
    taint = Taint(HOLD_TAINT, fault, HOLD_EFFECT)
    spec = taints_patch(manifest, without=HOLD_TAINT, plus=[taint])
    return merged(_taken_up(replace(mark, undo=undo), manifest), {"spec": spec})


def _taken_up(mark: Mark, manifest: Manifest) -> Json:
    """Owned, with what the node offered when first taken up: a repair must not lose of it.

    Karpenter is told to leave the repair of its node to us, where nobody has told it before.
    """
    owned = replace(mark, state=MarkState.OWNED, offered=mark.offered or offered(manifest))
    annotations = manifest["metadata"].get("annotations") or {}
    if not karpenters(manifest) or VETO in annotations:
        return mark_patch(owned)
    owned = replace(owned, undo=(*owned.undo, annotation_entry(VETO)))
    return merged(mark_patch(owned), {"metadata": {"annotations": {VETO: "true"}}})
