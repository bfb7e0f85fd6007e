"""Take the mark off: the incident is over, and nothing of ours stays on the node.

A hold that is still on keeps its mark: without it the watcher would open a new incident for it.
"""

from temporalio import activity

from activities.conduct import conduct
from activities.endings import ended, succeeded
from activities.look import held, identity_changed
from activities.node_change import change_node, mark_patch, merged
from activities.undo import undo_changes
from fleet.mark import UNDO_CORDON, UNDO_TAINT
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.request import StepRequest

HOLD_STANDS = "hold-stands"
"""PERMANENT: release comes before close."""


class CloseActivities:
    """The activity `close`."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes

    @activity.defn(name="close")
    async def close(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the node carries no mark of this incident."""

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            return judge_close(manifest, node, request)

        return await conduct(lambda _: change_node(self._kubernetes, request, judge))


def judge_close(manifest: Manifest, node: NodeState, request: StepRequest) -> Json | Outcome:
    """The patch that takes our mark off, with what else it says we did, or how the step ends."""
    no = identity_changed(node, request)
    if no:
        return no
    if node.mark is None or node.mark.id != request.incident:
        return succeeded("no mark of this incident", node)
    if held(node) and node.mark.undo:
        what = "the hold is still on: release it before the mark goes"
        return ended(OutcomeKind.PERMANENT, HOLD_STANDS, what, node)
    rest = set(node.mark.undo) - {UNDO_TAINT, UNDO_CORDON}
    return merged(undo_changes(manifest, rest), mark_patch(None))
