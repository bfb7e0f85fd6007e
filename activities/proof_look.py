"""May this node be proven now? Look again just before: the node, its taint, others at work, jobs.

Every no has its reason, and nothing here changes anything.
"""

from collections.abc import Sequence
from datetime import timedelta

from activities.claims import claim_on
from activities.clock import Clock
from activities.endings import cancelled
from activities.idle import IN_USE, users_of
from activities.look import Sight, boot_changed, identity_changed
from activities.node_pods import PODS, bound_to, pods_on
from activities.waiting import wait_until
from fleet.node import Manifest, NodeState
from fleet.outcome import Outcome
from fleet.ports import Kubernetes
from fleet.proof import Why
from fleet.proving import ProveRequest
from fleet.reason import BUSY_ELSEWHERE
from fleet.request import StepRequest
from fleet.step import Step
from policies.proving import why_not

NAMED = 3
"""Pods that a sentence names."""
TAINT_GONE = "taint-gone"
"""CANCELLED: the taint of this proof is not on the node any more."""


def as_step(request: ProveRequest) -> StepRequest:
    """A proof's try is a verify on the node: by the same Pod, judged in the same way."""
    return StepRequest(
        operation=request.operation,
        step=Step.VERIFY,
        incident=request.operation,
        node=request.task.node,
        boot_id=request.task.boot_id,
        deadline=request.deadline,
        checks=request.checks,
        harmless=request.harmless,
    )


def premise(
    manifest: Manifest, node: NodeState, request: ProveRequest, now: Clock
) -> Outcome | None:
    """Why nothing may be proven on this node now, or None; its taint is `tainted`'s business."""
    step = as_step(request)
    no = identity_changed(node, step) or boot_changed(node, step)
    if no:
        return no
    why, who = why_not(node, now()), claim_on(manifest, node)
    if why:
        return cancelled(why, f"{node.identity.name} is not to be proven now: {why}", node)
    return cancelled(BUSY_ELSEWHERE, who, node) if who else None


def tainted(node: NodeState, request: ProveRequest) -> Outcome | None:
    """Whether the taint is still there, and for the reason of this proof."""
    taint = node.unproven
    if taint and Why.of(taint.value) is request.task.why:
        return None
    return cancelled(TAINT_GONE, "the taint of this proof is not on the node any more", node)


async def working(
    kubernetes: Kubernetes, sight: Sight, request: ProveRequest, now: Clock
) -> Outcome | None:
    """Whether a job's Pod may have a GPU of the node open just now."""
    pods = await pods_on(kubernetes, request.task.node.name)
    return _in_use(pods, sight, request, now)


async def work_comes(
    kubernetes: Kubernetes, sight: Sight, request: ProveRequest, now: Clock, within: timedelta
) -> Outcome | None:
    """The same, watched for a while: what the scheduler had placed before it saw the taint."""
    return await wait_until(
        kubernetes,
        PODS,
        bound_to(request.task.node.name),
        lambda pods: _in_use(pods, sight, request, now),
        until=now() + within,
        now=now,
    )


def _in_use(
    pods: Sequence[Manifest], sight: Sight, request: ProveRequest, now: Clock
) -> Outcome | None:
    users = users_of(pods, sight, as_step(request), now())
    if not users:
        return None
    named = ", ".join(users[:NAMED])
    return cancelled(IN_USE, f"{len(users)} Pods may use its GPUs: {named}", sight.node)
