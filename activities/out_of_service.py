"""Let Kubernetes take the pods off a machine that is proven off, by its out-of-service taint.

The taint frees volumes and lets replacements start, so it may only stand while the machine does
nothing: the Node and the provider are asked just before, and it is taken off again before anybody
starts the machine. Nothing here deletes a pod.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from activities.clock import Clock
from activities.endings import succeeded
from activities.kubelet import kubelet_silent
from activities.look import hold_gone, identity_changed
from activities.node_change import change_node, mark_patch, merged, taints_patch
from activities.node_pods import PODS, bound_to, pods_on
from activities.operations import Operations
from activities.pods import INTERRUPTED, WAITED, DrainTerms, PodClass, plan_drain
from activities.undo import undo_changes, without
from activities.waiting import wait_until
from fleet.errors import NotFound
from fleet.machine import MachineAddress, Power
from fleet.mark import UNDO_OUT_OF_SERVICE
from fleet.names import OUT_OF_SERVICE_TAINT, node_path
from fleet.node import Manifest, NodeState, Taint, read_node
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes
from fleet.request import StepRequest

ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"

CLEAN_UP = timedelta(minutes=3)
"""For pods to be deleted and volumes to be detached; the machine is off all that time."""

LEAVE = frozenset((*WAITED, *INTERRUPTED)) - {
    PodClass.MIRROR,
    PodClass.DAEMON,
    PodClass.TOLERATES,
}
"""What the taint takes off; daemons and mirror pods belong to the node and come back with it."""

TAINT = Taint(OUT_OF_SERVICE_TAINT, "nodeshutdown", "NoExecute")


class OutOfService:
    """The taint around one machine that is off."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        operations: Operations,
        now: Clock,
        *,
        limit: timedelta = CLEAN_UP,
    ) -> None:
        self._kubernetes = kubernetes
        self._operations = operations
        self._now = now
        self._limit = limit

    async def clean(self, request: StepRequest, machine: MachineAddress) -> str:
        """Take pods and volumes off, if the machine is off and the node dead; says what happened.

        Whatever happens the taint is off again at the end, as long as the Node can be written.
        """
        no = await self._refusal(request, machine)
        if no:
            return f"pods were left alone: {no}"
        try:
            left = await self._taken_off(request)
        finally:  # also where the answer to putting it on was never heard
            await self.lift(request)
        return f"still there: {left}" if left else "its pods and volumes are free"

    async def _taken_off(self, request: StepRequest) -> str:
        """Put the taint on and wait; what is left when time is up, or why it could not be put."""
        put = await change_node(
            self._kubernetes, request, lambda manifest, node: _put(manifest, node, request)
        )
        if put.kind is not OutcomeKind.SUCCEEDED:
            return f"everything, {put.detail}"
        return await self._cleaned(request)

    async def lift(self, request: StepRequest) -> Outcome:
        """Take the taint off, if it is ours."""
        return await change_node(self._kubernetes, request, _lift)

    async def _refusal(self, request: StepRequest, machine: MachineAddress) -> str:
        """Why not; read anew, since this is what two machines with one volume hang on."""
        try:
            manifest = await self._kubernetes.get(node_path(request.node.name))
        except NotFound:
            return "the Node is gone"
        node = read_node(manifest, request.node.cluster)
        if not await kubelet_silent(self._kubernetes, node, self._now()):
            return "its kubelet answers"
        power = await self._operations.power(machine)
        return "" if power is Power.OFF else f"the provider says that the machine is {power}"

    async def _cleaned(self, request: StepRequest) -> str:
        """What is left when time is up; empty once pods and volumes are gone."""
        until = self._now() + self._limit
        names = await self._until_none(request, until)
        return names or await self._until_detached(request.node.name, until)

    async def _until_none(self, request: StepRequest, until: datetime) -> str:
        manifest = await self._kubernetes.get(node_path(request.node.name))
        node = read_node(manifest, request.node.cluster)
        terms = replace(DrainTerms.of(manifest, node, request, ()), gpus_must_be_free=False)
        query = bound_to(request.node.name)

        def left(pods: Sequence[Json]) -> str:
            plan = plan_drain(pods, terms, self._now())
            return ", ".join(str(each) for each in plan if each.kind in LEAVE)

        def judge(pods: Sequence[Json]) -> bool | None:
            return None if left(pods) else True

        if await wait_until(self._kubernetes, PODS, query, judge, until=until, now=self._now):
            return ""
        return left(await pods_on(self._kubernetes, request.node.name))

    async def _until_detached(self, node: str, until: datetime) -> str:
        def left(attachments: Sequence[Json]) -> list[str]:
            mine = (each for each in attachments if each["spec"].get("nodeName") == node)
            return [str(each["metadata"]["name"]) for each in mine]

        def judge(attachments: Sequence[Json]) -> bool | None:
            return None if left(attachments) else True

        gone = await wait_until(
            self._kubernetes, ATTACHMENTS, {}, judge, until=until, now=self._now
        )
        return "" if gone else "volumes that are still attached"


def _put(manifest: Manifest, node: NodeState, request: StepRequest) -> Json | Outcome:
    no = identity_changed(node, request) or hold_gone(node, request)
    if no or node.mark is None:
        return no or succeeded()
    if any(each.key == TAINT.key for each in node.taints):
        ours = UNDO_OUT_OF_SERVICE in node.mark.undo
        return succeeded("somebody else's taint does the same" if not ours else "", node)
    mark = replace(node.mark, undo=(*node.mark.undo, UNDO_OUT_OF_SERVICE))
    spec = taints_patch(manifest, without=TAINT.key, plus=[TAINT])
    return merged(mark_patch(mark), {"spec": spec})


def _lift(manifest: Manifest, node: NodeState) -> Json | Outcome:
    if node.mark is None or UNDO_OUT_OF_SERVICE not in node.mark.undo:
        return succeeded("no taint of ours", node)
    changes = undo_changes(manifest, (UNDO_OUT_OF_SERVICE,))
    return merged(changes, mark_patch(without(node.mark, (UNDO_OUT_OF_SERVICE,))))
