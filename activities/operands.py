"""The GPU Operator's operands that hold GPUs: off the node for a reset, and back after it.

They follow labels of the Node. Each label's value is in the mark before it is changed, in the same
patch, so that whoever comes next can give it back. Where an operand would not tolerate our hold on
its way back, the hold takes the form of a cordon, which every DaemonSet tolerates.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from activities.clock import Clock
from activities.endings import ended, succeeded
from activities.look import Sight, hold_gone, identity_changed
from activities.node_change import change_node, mark_patch, merged, taints_patch
from activities.node_pods import PODS, bound_to
from activities.pods import daemon_set_of, tolerates_hold
from activities.undo import PAUSED_VALUE, label_entry, paused_labels, undo_changes, without
from activities.waiting import wait_until
from fleet.mark import UNDO_CORDON, UNDO_TAINT, Mark
from fleet.names import HOLD_TAINT
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.request import StepRequest

DEPLOY = "nvidia.com/gpu.deploy."
HOLDERS = ("device-plugin", "gpu-feature-discovery", "dcgm", "dcgm-exporter")
"""Operands that hold a GPU open. The driver stays: a reset needs it."""

LEAVE_LIMIT = timedelta(minutes=2)
"""For the operands' pods to be gone; they have seconds of grace."""

CANNOT_RETURN = "operands-cannot-return"
"""PERMANENT: they tolerate neither our hold nor is the cordon ours to use."""


class Operands:
    """The operands on one node."""

    def __init__(
        self, kubernetes: Kubernetes, now: Clock, *, limit: timedelta = LEAVE_LIMIT
    ) -> None:
        self._kubernetes = kubernetes
        self._now = now
        self._limit = limit

    async def pause(self, request: StepRequest, sight: Sight, pods: Sequence[Manifest]) -> Outcome:
        """SUCCEEDED: none of their pods is left, or there are none. Else why not.

        `sight` and `pods` are what was just read of the node.
        """
        if not _deployed(sight.node) and not any(_operand(each) for each in pods):
            return succeeded("no operand is deployed", sight.node)

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            return judge_pause(manifest, node, request, pods)

        paused = await change_node(self._kubernetes, request, judge, sight)
        if paused.kind is not OutcomeKind.SUCCEEDED:
            return paused
        left = await self._gone(request.node.name, min(self._now() + self._limit, request.deadline))
        if not left:
            return paused
        return ended(OutcomeKind.PERMANENT, "gpu-in-use", f"operands stay: {', '.join(left)}")

    async def restore(self, request: StepRequest, sight: Sight | None = None) -> Outcome:
        """Give every paused label its value back. Foreign changes since then stay.

        `sight` is a read of just now, if there is one.
        """

        def judge(manifest: Manifest, node: NodeState) -> Json | Outcome:
            return judge_restore(manifest, node, request)

        return await change_node(self._kubernetes, request, judge, sight)

    async def _gone(self, node: str, until: datetime) -> tuple[str, ...]:
        """The names of those that are left when time is up."""
        last: tuple[str, ...] = ()

        def judge(pods: Sequence[Json]) -> bool | None:
            nonlocal last
            last = tuple(each["metadata"]["name"] for each in pods if _operand(each))
            return None if last else True

        await wait_until(self._kubernetes, PODS, bound_to(node), judge, until=until, now=self._now)
        return last


def judge_pause(
    manifest: Manifest, node: NodeState, request: StepRequest, pods: Sequence[Manifest]
) -> Json | Outcome:
    """The patch that pauses what is deployed, or how that ends."""
    no = identity_changed(node, request) or hold_gone(node, request)
    if no or node.mark is None:
        return no or succeeded()
    deployed = _deployed(node)
    if not deployed:
        return succeeded("no operand is deployed", node)
    entries = tuple(label_entry(key, value) for key, value in deployed.items())
    mark = replace(node.mark, undo=(*node.mark.undo, *entries))
    paused: Json = {"metadata": {"labels": dict.fromkeys(deployed, PAUSED_VALUE)}}
    hold = node.hold
    stranded = hold and [
        each for each in pods if _operand(each) and not tolerates_hold(each, hold.value)
    ]
    if not stranded:
        return merged(paused, mark_patch(mark))
    if node.unschedulable:
        names = ", ".join(each["metadata"]["name"] for each in stranded)
        what = f"{names} do not tolerate the hold, and somebody else has cordoned the node"
        return ended(OutcomeKind.PERMANENT, CANNOT_RETURN, what, node)
    return merged(paused, _as_cordon(manifest, mark))


def judge_restore(manifest: Manifest, node: NodeState, request: StepRequest) -> Json | Outcome:
    """The patch that gives the labels back, or how that ends."""
    no = identity_changed(node, request)
    if no:
        return no
    mark = node.mark
    if mark is None or mark.id != request.incident or not paused_labels(mark):
        return succeeded("nothing is paused", node)
    entries = tuple(label_entry(key, value) for key, value in paused_labels(mark).items())
    return merged(undo_changes(manifest, entries), mark_patch(without(mark, entries)))


def _as_cordon(manifest: Manifest, mark: Mark) -> Json:
    """The hold in its other form, in one patch: at no moment is there none."""
    undo = (*(each for each in mark.undo if each != UNDO_TAINT), UNDO_CORDON)
    spec = {**taints_patch(manifest, without=HOLD_TAINT), "unschedulable": True}
    return merged(mark_patch(replace(mark, undo=undo)), {"spec": spec})


def _deployed(node: NodeState) -> dict[str, str]:
    """The labels, with their values, by which operands that hold GPUs are on the node."""
    labels = {key: node.labels.get(key) for key in (DEPLOY + each for each in HOLDERS)}
    return {key: value for key, value in labels.items() if value == "true"}


def _operand(pod: Manifest) -> bool:
    """Whether it follows one of the labels."""
    selector = (pod.get("spec") or {}).get("nodeSelector") or {}
    return daemon_set_of(pod) is not None and any(DEPLOY + each in selector for each in HOLDERS)
