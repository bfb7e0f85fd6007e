"""Who is held: the rules by which a sick node becomes an incident. Pure.

Holding is urgent, harmless and reversible, so it asks for little; what follows it is the
workflow's. Breaker and cap are gates: callables that say why not now.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from fleet.fault import Fault, FaultName
from fleet.mark import UNDO_TAINT, Mark, MarkState
from fleet.node import NodeState
from fleet.report import Report
from intake.rules import Rules

Gate = Callable[[NodeState, Report], str]
"""Why this node must not be held now, in a word; empty where nothing speaks against it."""

Rank = tuple[int, datetime, str]
"""Order of holds and starts: urgency, first sight, name."""


class Refusal(StrEnum):
    """Why a node is not held."""

    HEALTHY = "nothing-to-hold"
    MARKED = "already-marked"
    UNREADABLE_MARK = "unreadable-mark"
    DELETING = "being-deleted"
    UNMANAGED = "not-managed"
    PAUSED = "paused"
    COOL_DOWN = "cool-down"


def refusal(node: NodeState, sick: Fault | None, now: datetime) -> Refusal | None:
    """Why this node must not be held whatever its scope says, or None."""
    if node.mark_problem:
        return Refusal.UNREADABLE_MARK
    if node.mark is not None and node.mark.uid == node.identity.uid:
        return Refusal.MARKED
    if sick is None:
        return Refusal.HEALTHY
    return off_limits(node, now)


def off_limits(node: NodeState, now: datetime) -> Refusal | None:
    """Why nothing of ours may begin on this node, sick or not."""
    if node.deleting:
        return Refusal.DELETING
    if not node.managed:
        return Refusal.UNMANAGED
    if node.pause is not None:
        return Refusal.PAUSED
    asked_for = node.open_request is not None  # a person outranks an earlier person's cool-down
    if node.cool_down is not None and now < node.cool_down and not asked_for:
        return Refusal.COOL_DOWN
    return None


def worst(report: Report, rules: Rules, starting: bool = False) -> Fault | None:
    """The fault that the node is held for: the most urgent, then the oldest; None if none is.

    That a node which is `starting` is not Ready is no fault yet.
    """
    return _most_urgent([each for each in report.faults if rules.holds(each)], rules, starting)


def worst_rehearsed(report: Report, rules: Rules, starting: bool = False) -> Fault | None:
    """The same of the faults that would be held but for dry run."""
    return _most_urgent([each for each in report.faults if rules.rehearses(each)], rules, starting)


def _most_urgent(held: list[Fault], rules: Rules, starting: bool) -> Fault | None:
    if starting:
        held = [each for each in held if each.name is not FaultName.HOST_UNREACHABLE]
    return min(held, key=lambda each: (rules.urgency(each), each.since, each.key), default=None)


def starting(node: NodeState, now: datetime, grace: timedelta) -> bool:
    """Whether this Node is so young that its kubelet may never have been Ready yet.

    One that was alive and fell silent is told by the control plane's word Unknown.
    """
    if node.created is None or now >= node.created + grace:
        return False
    ready = next((each for each in node.conditions if each.type == "Ready"), None)
    return ready is None or ready.status == "False" or ready.reason == NEVER_UPDATED


NEVER_UPDATED = "NodeStatusNeverUpdated"
"""Reason of a Ready condition that the control plane wrote for a kubelet that never spoke."""


def rank(node: NodeState, sick: Fault | None, rules: Rules, now: datetime) -> Rank:
    """Worst first; a node without a fault of its own (a returning one) comes after the sick."""
    if sick is None:
        return (_LAST, now, node.identity.name)
    return (rules.urgency(sick), sick.since, node.identity.name)


_LAST = 1_000_000


def new_mark(node: NodeState, now: datetime) -> Mark:
    """A pending mark of an incident that begins now.

    The hold taint is in its undo record either way: the key is ours, so one that stands there
    without a mark is a hold of ours whose mark was lost.
    """
    identity = node.identity
    opened = now.astimezone(UTC).replace(microsecond=0)
    return Mark(
        id=f"{identity.machine}-{opened:%Y%m%d%H%M%S}",
        machine=identity.machine,
        uid=identity.uid,
        state=MarkState.PENDING,
        opened=opened,
        undo=(UNDO_TAINT,),
    )
