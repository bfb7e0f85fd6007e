"""A step request as the Pod on the node needs it, and what its report means for the step. Pure."""

from dataclasses import replace

from activities.endings import ended, succeeded
from activities.pinned_pod import NoReport, Trouble
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.request import StepRequest
from fleet.step import NodeStepReport, NodeStepRequest, NodeStepResult

LOCKED = "gpu-locked"
"""What the node reports when another step of ours, a proof perhaps, held the GPUs for too long."""


def step_request(request: StepRequest) -> NodeStepRequest:
    """What the Pod is told; its not-after is the step's own deadline."""
    return NodeStepRequest(
        operation=request.operation,
        incident=request.incident,
        step=request.step,
        boot_id=request.boot_id,
        not_after=request.deadline,
        parts=request.parts,
        checks=request.checks,
    )


def repair_outcome(
    report: NodeStepReport | NoReport, request: StepRequest, node: NodeState
) -> Outcome:
    """How a repair on the node ended: done, not done for sure, or nobody knows."""
    step = request.step.value
    if isinstance(report, NoReport):
        sure = report.trouble is Trouble.NEVER_STARTED
        kind = OutcomeKind.PERMANENT if sure else OutcomeKind.AMBIGUOUS
        return ended(kind, report.trouble.value, report.detail, node)
    match report.result:
        case NodeStepResult.DONE:
            outcome = succeeded(report.reason, node)
        case NodeStepResult.FAILED if report.reason == LOCKED:  # nothing was begun
            outcome = ended(OutcomeKind.TRANSIENT, LOCKED, report.reason, node)
        case NodeStepResult.FAILED:
            outcome = ended(OutcomeKind.PERMANENT, f"{step}-failed", report.reason, node)
        case NodeStepResult.REFUSED:
            outcome = ended(OutcomeKind.PERMANENT, f"{step}-refused", report.reason, node)
    return replace(outcome, findings=report.findings)
