"""What the steps of a proof say as Kubernetes Events: one table. Pure.

Whoever waits for a node to take work learns here why it doesn't; which Pods came is not said.
"""

from collections.abc import Mapping

from activities.node_event import END, STEP, EventType, NodeEvent
from fleet.outcome import Outcome, OutcomeKind
from fleet.proving import ProofEnd, ProveRequest

TAINT, END_STEP = "prove-taint", "prove-end"
"""The activities that say something."""

_ENDED: Mapping[ProofEnd, tuple[str, str, EventType]] = {
    ProofEnd.PROVEN: ("NodeProven", "checked: well, takes work", EventType.NORMAL),
    ProofEnd.FOUND: ("NodeNotProven", "checked: sick, takes no work", EventType.WARNING),
    ProofEnd.UNKNOWN: ("NodeNotProven", "nobody could tell if it is well", EventType.WARNING),
}
_SWEPT = ("NodeSwept", "idle: no new work until its checks have passed", EventType.NORMAL)


def event_of_proof(step: str, request: ProveRequest, outcome: Outcome) -> NodeEvent | None:
    """What the end of a step says; None for what changed nothing that anybody waits for."""
    if outcome.kind is not OutcomeKind.SUCCEEDED:
        return None
    said = {TAINT: _SWEPT, END_STEP: _ENDED.get(request.end)}.get(step)
    if said is None:
        return None
    reason, message, kind = said
    node = request.task.node
    ended = {END: request.end.value} if step == END_STEP else {}
    return NodeEvent(
        node=node,
        incident=f"prove-{node.machine}",
        reason=reason,
        message=message,
        operation=request.operation,
        same=(step, request.operation),
        type=kind,
        annotations={STEP: step, **ended},
    )
