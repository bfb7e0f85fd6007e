"""Look again, just before acting: is this still the node, the hold and the fault of the decision?

Every no has its reason. Nothing here changes anything.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from activities.claims import claim_on
from activities.clock import Clock
from activities.endings import ANOTHER_MACHINE, BOOT_UNKNOWN, REBORN, cancelled, ended, node_gone
from activities.evidence import standing, worst
from fleet.errors import NotFound
from fleet.finding import Verdict
from fleet.instant import parse_instant
from fleet.mark import UNDO_CORDON
from fleet.names import LEASES, agent_lease, node_path
from fleet.node import Manifest, NodeIdentity, NodeState, read_node
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.reason import (
    BOOT_CHANGED,
    BUSY_ELSEWHERE,
    HOLD_REMOVED,
    MARK_REMOVED,
    PAUSED,
    PREMISE_GONE,
    UNMANAGED,
)
from fleet.request import StepRequest

AGENT_SILENT_AFTER = timedelta(minutes=6)
"""The agent renews its Lease every two minutes: three renewals missed."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A node that a step may act on, as just read."""

    manifest: Manifest
    node: NodeState


async def see(kubernetes: Kubernetes, node: NodeIdentity) -> Sight | Outcome:
    """The node of this name as it is now, whosever it is, or that there is none."""
    try:
        manifest = await kubernetes.get(node_path(node.name))
    except NotFound:
        return node_gone(node.name)
    return Sight(manifest, read_node(manifest, node.cluster))


async def look(
    kubernetes: Kubernetes, request: StepRequest, now: Clock, *, premise: bool
) -> Sight | Outcome:
    """The node, if the step may act on it; else why not.

    With `premise` one of the request's faults must stand, too: what harms needs a fault that is
    there, and unknown is none.
    """
    sight = await see(kubernetes, request.node)
    if isinstance(sight, Outcome):
        return sight
    no = refusal(sight.manifest, sight.node, request)
    if no is None and premise and not _seen_by_us(request):
        alive = await agent_alive(kubernetes, request.node.name, now())
        no = premise_gone(sight.node, request, now(), alive=alive)
    return no or sight


async def glance(kubernetes: Kubernetes, request: StepRequest) -> Sight | Outcome:
    """After acting: the node, if it is still the same one in the same boot.

    That somebody took the hold off meanwhile does not change what the step did.
    """
    sight = await see(kubernetes, request.node)
    if isinstance(sight, Outcome):
        return sight
    return identity_changed(sight.node, request) or boot_changed(sight.node, request) or sight


async def agent_alive(kubernetes: Kubernetes, node: str, now: datetime) -> bool:
    """Whether our agent on the node has renewed its Lease lately."""
    try:
        lease = await kubernetes.get(f"{LEASES}/{agent_lease(node)}")
    except NotFound:
        return False
    try:
        renewed = parse_instant(lease["spec"]["renewTime"])
    except (KeyError, TypeError, ValueError):
        return False
    return now - renewed <= AGENT_SILENT_AFTER


def refusal(manifest: Manifest, node: NodeState, request: StepRequest) -> Outcome | None:
    """Why no step may act on this node now, or None; the gravest reason first."""
    return (
        identity_changed(node, request)
        or hold_gone(node, request)
        or _asked_to_keep_off(node)
        or boot_changed(node, request)
        or _claimed(manifest, node)
    )


def identity_changed(node: NodeState, request: StepRequest) -> Outcome | None:
    """Another machine under the name, or the same one as a new Node object."""
    if node.identity.machine != request.node.machine:
        what = f"{node.identity.name} is machine {node.identity.machine} now"
        return ended(OutcomeKind.SUPERSEDED, ANOTHER_MACHINE, what, node)
    if node.identity.uid != request.node.uid:
        return cancelled(REBORN, f"{node.identity.name} came back as a new Node object", node)
    return None


def hold_gone(node: NodeState, request: StepRequest) -> Outcome | None:
    """Our mark or our hold was taken away, by whomever: that means stop."""
    if node.mark is None or node.mark.id != request.incident:
        found = node.mark_problem or (f"there is {node.mark.id}" if node.mark else "there is none")
        return cancelled(MARK_REMOVED, f"the mark of {request.incident} is gone: {found}", node)
    if not held(node):
        return cancelled(HOLD_REMOVED, "somebody took our hold off the node", node)
    return None


def held(node: NodeState) -> bool:
    """Whether our hold is on: the taint or, where the mark says so, our cordon."""
    cordoned = node.unschedulable and node.mark is not None and UNDO_CORDON in node.mark.undo
    return node.hold is not None or cordoned


def _asked_to_keep_off(node: NodeState) -> Outcome | None:
    if not node.managed:
        return cancelled(UNMANAGED, "people opted the node out by label", node)
    if node.pause is not None:
        return cancelled(PAUSED, f"paused by annotation: {node.pause}", node)
    return None


def boot_changed(node: NodeState, request: StepRequest) -> Outcome | None:
    """The node is not in the boot that the decision rested on, or nobody can tell."""
    if not node.boot_id or not request.boot_id:
        what = "the Node has no boot id" if not node.boot_id else "the request names no boot id"
        return ended(OutcomeKind.TRANSIENT, BOOT_UNKNOWN, what, node)
    if node.boot_id != request.boot_id:
        return cancelled(BOOT_CHANGED, "the node has booted since the decision", node)
    return None


def _claimed(manifest: Manifest, node: NodeState) -> Outcome | None:
    who = claim_on(manifest, node)
    return cancelled(BUSY_ELSEWHERE, who, node) if who else None


def premise_gone(
    node: NodeState, request: StepRequest, now: datetime, *, alive: bool
) -> Outcome | None:
    """None if one of the request's faults stands, or the last verify on this boot saw a fault."""
    if _seen_by_us(request):
        return None
    verdicts = {each.key: standing(each, node, now, agent_alive=alive) for each in request.faults}
    if worst(verdicts.values()) is Verdict.FAULT:
        return None
    said = ", ".join(f"{key}: {verdict.value}" for key, verdict in verdicts.items())
    return cancelled(PREMISE_GONE, said or "the request names no fault", node)


def _seen_by_us(request: StepRequest) -> bool:
    """Whether our own check saw a fault on this very boot: that outranks what the agent says."""
    return any(each.verdict is Verdict.FAULT for each in request.evidence)
