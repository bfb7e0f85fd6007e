"""Which nodes are to be proven, which idle ones are due for a sweep, and what a proof's try means.

Pure. Whether a node has work is not known here: the watcher and this see Nodes, not Pods.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.fault import FaultName
from fleet.finding import Verdict
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.proof import IN_SERVICE, Why
from fleet.proving import ProofEnd, ProveTask
from policies.own_conditions import read_own
from policies.proving_terms import Sweep

AGAIN_PARTS = 7
"""Where nothing could be told a node is due again after this part of `every`: a day of a week."""
_LONG_AGO = 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Idle nodes to prove, the one proven longest ago first, and how many of them at once."""

    tasks: tuple[ProveTask, ...]
    room: int
    due: int
    looked_at: int


def why_not(node: NodeState, now: datetime) -> str:
    """Why this node is not to be proven now, in a word; empty where nothing speaks against it."""
    reasons = (
        ("incident", node.mark is not None or bool(node.mark_problem) or node.hold is not None),
        ("not-managed", not node.managed),
        ("paused", node.pause is not None),
        ("being-deleted", node.deleting),
        ("cool-down", node.cool_down is not None and now < node.cool_down),
        ("cordoned", node.unschedulable),
        ("not-ready", node.ready != "True" or not node.boot_id),
    )
    return next((word for word, stands in reasons if stands), "")


def task_of(node: NodeState, now: datetime) -> ProveTask | None:
    """What the watcher asks for about a node with the taint, if it is its turn.

    A sweep's taint, and a trial's, is ours to take off whatever speaks against a proof: its run
    ends at once then. Who was found odd waits for another trial.
    """
    taint = node.unproven
    if taint is None:
        return None
    why = Why.of(taint.value)
    if why is Why.ODD or (why not in IN_SERVICE and why_not(node, now)):
        return None
    return ProveTask(node.identity, node.boot_id, why)


def sick(node: NodeState, now: datetime) -> bool:
    """Whether the node's own conditions say that something is wrong or cannot be told."""
    said = read_own(node, now)
    return bool(said.faults or said.unknown)


def due(nodes: Iterable[NodeState], sweep: Sweep, now: datetime) -> tuple[NodeState, ...]:
    """Nodes in service whose proof is too old, the oldest first; whether they idle is asked next.

    Swept ones that are under way, or whose fault nobody has taken up, are `room`'s business.
    """
    able = (each for each in nodes if each.unproven is None and not why_not(each, now))
    late = (each for each in able if _is_due(each, sweep, now) and not sick(each, now))
    return tuple(sorted(late, key=lambda each: (_last(each), each.identity.name)))


def in_turn(late: Sequence[NodeState], turn: int, most: int) -> tuple[NodeState, ...]:
    """At most so many of them. Where there are more, each turn begins where the last one ended:
    busy nodes stay due for long, and must not keep others from being looked at."""
    if len(late) <= most:
        return tuple(late)
    start = turn * most % len(late)
    return (*late[start:], *late[:start])[:most]


def room(nodes: Iterable[NodeState], sweep: Sweep) -> int:
    """How many more may be taken now. Whoever carries our taint counts until an incident has it:
    where a breaker keeps incidents from opening, sweeping stops by itself. What people keep to
    themselves stops nothing."""
    return max(0, sweep.at_once - len(taken_out(nodes, (Why.SWEEP, Why.FOUND))))


def taken_out(nodes: Iterable[NodeState], ours: Sequence[Why]) -> list[NodeState]:
    """Nodes that carry our taint for one of these reasons, and that nobody else has."""
    return [
        each
        for each in nodes
        if each.unproven and Why.of(each.unproven.value) in ours and each.mark is None
        if each.managed and each.pause is None
    ]


def without_harmless(outcome: Outcome, harmless: Sequence[FaultName]) -> Outcome:
    """What a try saw, less the faults that policy holds no node for: no incident takes them up, so
    a taint for them would stay for ever. What else could not be told is still not told."""
    findings = tuple(each for each in outcome.findings if each.fault not in harmless)
    if outcome.kind is not OutcomeKind.PERMANENT or len(findings) == len(outcome.findings):
        return outcome
    verdicts = {each.verdict for each in findings}
    if Verdict.FAULT in verdicts:
        return replace(outcome, findings=findings)
    kind = OutcomeKind.TRANSIENT if Verdict.UNKNOWN in verdicts else OutcomeKind.SUCCEEDED
    found = dict.fromkeys(each.fault.value for each in outcome.findings if each.fault)
    detail = f"nothing but what policy holds no node for: {', '.join(found)}"
    return replace(outcome, kind=kind, reason="", detail=detail, findings=findings)


def after(outcome: Outcome) -> ProofEnd:
    """How the proof ends if this was its last try. UNKNOWN is tried again, while there are tries; a
    premise that is gone stops it."""
    match outcome.kind:
        case OutcomeKind.SUCCEEDED:
            return ProofEnd.PROVEN
        case OutcomeKind.CANCELLED | OutcomeKind.SUPERSEDED:
            return ProofEnd.STOPPED
        case OutcomeKind.PERMANENT if _saw_a_fault(outcome):
            return ProofEnd.FOUND
        case _:
            return ProofEnd.UNKNOWN


def _saw_a_fault(outcome: Outcome) -> bool:
    return any(each.verdict is Verdict.FAULT for each in outcome.findings)


def _is_due(node: NodeState, sweep: Sweep, now: datetime) -> bool:
    proof = node.proof
    fresh = proof.proven is not None and now < proof.proven + sweep.every
    tried = proof.tried is not None and now < proof.tried + sweep.every / AGAIN_PARTS
    return not fresh and not tried


def _last(node: NodeState) -> float:
    known = [each.timestamp() for each in (node.proof.proven, node.proof.tried) if each]
    return max(known, default=_LONG_AGO)
