"""How a node stands by its mark and its hold, and what the watcher writes for it. Pure.

The watcher writes only what no workflow is there to write: the first mark, one that was lost, one
whose run is gone. Cordons and taints of others are not looked at.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from fleet.fault import Fault, FaultName
from fleet.mark import UNDO_CORDON, UNDO_TAINT, Mark, MarkState
from fleet.node import NodeState
from fleet.ports import Json
from fleet.report import Report
from intake.admission import new_mark, off_limits, refusal
from intake.node_patch import (
    cool_down_patch,
    drop_request_patch,
    hold_patch,
    mark_patch,
    take_up_patch,
    withdraw_patch,
)
from intake.settings import Settings


class Standing(Enum):
    """What mark and hold together say."""

    FREE = "free"
    ORPHAN = "hold without a mark"
    UNREADABLE = "mark that cannot be read"
    STRAY = "mark of another Node object"
    PENDING = "held, not taken up"
    LET_GO = "pending, and the hold was taken away"
    OWNED = "held by an incident"
    UNHELD = "owned, and the hold was taken away"
    PROBATION = "given back, under observation"


_HELD = {
    MarkState.PENDING: (Standing.PENDING, Standing.LET_GO),
    MarkState.OWNED: (Standing.OWNED, Standing.UNHELD),
    MarkState.PROBATION: (Standing.PROBATION, Standing.PROBATION),
}
"""By mark: with our hold, without it. In probation there is none by design."""


def standing(node: NodeState) -> Standing:
    """How the node stands."""
    if node.mark_problem:
        return Standing.UNREADABLE
    if node.mark is None:
        return Standing.FREE if node.hold is None else Standing.ORPHAN
    if node.mark.uid != node.identity.uid:
        return Standing.STRAY
    held, unheld = _HELD[node.mark.state]
    return held if _kept_off(node, node.mark) else unheld


def _kept_off(node: NodeState, mark: Mark) -> bool:
    """Held by our taint, or by a cordon of ours where a step needs the taint away."""
    return node.hold is not None or (UNDO_CORDON in mark.undo and node.unschedulable)


class Act(StrEnum):
    """What a write of the watcher does to a node, as the log and the counters call it."""

    HOLD = "hold"
    HOLD_RETURNED = "hold-returned"
    ADOPT = "adopt-hold"
    WITHDRAW = "take-hold-back"
    DROP_MARK = "drop-mark"
    COOL_DOWN = "cool-down"
    REOPEN = "back-to-pending"
    TAKE_UP = "take-up-request"
    DROP_REQUEST = "drop-request"


@dataclass(frozen=True, slots=True)
class Write:
    """One patch of a node; `fault` is what it is held for, where it is, `since` its first sight."""

    act: Act
    body: Json
    fault: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a node beside its record.

    `cool_down` is the policy's. `sick` is the fault that the node is to be held for, `rehearsed`
    the one that it would be held for but for dry run, `blocked` the gates' reason against a hold.
    `returning`: its machine has an open incident and came back without a mark; the value is what it
    had been held for, empty where nobody knows. `let_go`: a person took hold and mark away.
    """

    now: datetime
    report: Report
    cool_down: timedelta
    sick: Fault | None = None
    rehearsed: Fault | None = None
    blocked: str = ""
    returning: str | None = None
    let_go: bool = False
    clean_since: datetime | None = None


def next_write(node: NodeState, facts: Facts, settings: Settings) -> Write | None:
    """What the watcher has to write for this node now, or nothing."""
    match standing(node):
        case Standing.FREE:
            return _admit(node, facts)
        case Standing.ORPHAN | Standing.STRAY:
            return _adopt(node, facts)
        case Standing.PENDING:
            return _take_up(node) or _withdraw(node, facts, settings)
        case Standing.LET_GO:
            return _cool_down(node, facts)
        case Standing.OWNED | Standing.UNHELD | Standing.PROBATION:
            return _take_up(node)
        case _:
            return None


def reopen(node: NodeState, sick: Fault | None) -> Write | None:
    """The mark's run is gone: the next run adopts it, undo record and all.

    In probation there is nothing left to undo: a sick node is held again, another one is free.
    """
    mark = node.mark
    if mark is None or mark.uid != node.identity.uid or mark.state is MarkState.PENDING:
        return None
    pending = replace(mark, state=MarkState.PENDING)
    if mark.state is MarkState.OWNED:
        return Write(Act.REOPEN, mark_patch(node, pending))
    if sick is None:
        return Write(Act.DROP_MARK, withdraw_patch(node))
    undo = tuple(dict.fromkeys((*mark.undo, UNDO_TAINT)))
    return Write(Act.REOPEN, hold_patch(node, replace(pending, undo=undo), sick.name), sick.name)


def let_go(before: NodeState, after: NodeState) -> bool:
    """Whether hold and mark of an incident vanished from a Node that is still the same.

    A mark in probation is the workflow's to take off, so its end says nothing.
    """
    return (
        before.identity.uid == after.identity.uid
        and before.mark is not None
        and before.mark.state is not MarkState.PROBATION
        and standing(after) is Standing.FREE
    )


def _take_up(node: NodeState) -> Write | None:
    """A person's request on a node that has an incident is that incident's, and ends with it."""
    opened, mark = node.opened, node.mark
    if opened is None or mark is None or opened.incident == mark.id or not node.managed:
        return None
    if opened.incident:
        return Write(Act.DROP_REQUEST, drop_request_patch(node))
    return Write(Act.TAKE_UP, take_up_patch(node, opened, mark), opened.fault)


def _admit(node: NodeState, facts: Facts) -> Write | None:
    if facts.let_go:
        return _cool_down(node, facts)
    if node.opened and node.opened.incident:
        return Write(Act.DROP_REQUEST, drop_request_patch(node))
    fault = facts.sick.name if facts.sick else facts.returning or FaultName.UNKNOWN_CODE
    since = facts.sick.since if facts.sick else None
    returns = facts.returning is not None and off_limits(node, facts.now) is None
    if not returns and (facts.blocked or refusal(node, facts.sick, facts.now) is not None):
        return None
    patch = hold_patch(node, new_mark(node, facts.now), fault)
    return Write(Act.HOLD_RETURNED if returns else Act.HOLD, patch, fault, since)


def _adopt(node: NodeState, facts: Facts) -> Write | None:
    """Take over a hold whose mark is lost, or a mark that speaks of an earlier Node object."""
    if off_limits(node, facts.now) is not None:
        return None
    same_machine = node.mark is not None and node.mark.machine == node.identity.machine
    if node.hold is None and not same_machine:
        return Write(Act.DROP_MARK, withdraw_patch(node))
    known = node.hold.value if node.hold else ""
    fault = facts.sick.name if facts.sick else known or FaultName.UNKNOWN_CODE
    return Write(Act.ADOPT, hold_patch(node, _adopted_mark(node, facts.now), fault), fault)


def _adopted_mark(node: NodeState, now: datetime) -> Mark:
    mark = node.mark
    if mark is None or mark.machine != node.identity.machine:
        return new_mark(node, now)
    undo = tuple(dict.fromkeys((*mark.undo, UNDO_TAINT)))
    return replace(mark, uid=node.identity.uid, state=MarkState.PENDING, undo=undo)


def _withdraw(node: NodeState, facts: Facts, settings: Settings) -> Write | None:
    """Nobody took the hold up and the node has been well for long enough.

    A mark that has more to undo than the hold had a run; only the next run may undo that.
    """
    mark = node.mark
    assert mark is not None
    if facts.clean_since is None or not set(mark.undo) <= {UNDO_TAINT}:
        return None
    if facts.now - facts.clean_since < settings.withdraw_after:
        return None
    return Write(Act.WITHDRAW, withdraw_patch(node))


def _cool_down(node: NodeState, facts: Facts) -> Write | None:
    if node.cool_down is not None and facts.now < node.cool_down:
        return None
    until = (facts.now + facts.cool_down).replace(microsecond=0)
    return Write(Act.COOL_DOWN, cool_down_patch(node, until))
