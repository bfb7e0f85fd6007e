"""May this step act at all? The boot that the decision rested on, and its time, looked at here.

Between the decision and this process lie a scheduler, a kubelet and an image pull: the node may
have been booted since, or the moment may be over.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.finding import Finding
from fleet.step import NodeStepReport, NodeStepRequest, NodeStepResult
from probes.machine import Machine


class Reason:
    """Why a step ended as it did: stable codes of `NodeStepReport.reason`."""

    BOOT_CHANGED = "boot-changed"
    TOO_LATE = "too-late"
    BOOT_UNKNOWN = "boot-unknown"
    NO_PARTS = "no-parts"
    NO_ADDRESS = "no-address"
    IN_USE = "in-use"
    LOCKED = "gpu-locked"
    INTERRUPTED = "interrupted"
    HUNG = "hung"
    NO_TOOL = "no-tool"
    TOOL_FAILED = "tool-failed"
    STATE_UNWRITABLE = "state-unwritable"
    FAULT = "fault-found"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a step ended, before it is worded as a report."""

    result: NodeStepResult
    reason: str = ""
    findings: tuple[Finding, ...] = ()


DONE = Ending(NodeStepResult.DONE)


def refused(reason: str) -> Ending:
    """Not tried: its premise is gone."""
    return Ending(NodeStepResult.REFUSED, reason)


def failed(reason: str, *findings: Finding) -> Ending:
    """Tried in vain, or not possible here."""
    return Ending(NodeStepResult.FAILED, reason, findings)


def check_premise(machine: Machine, request: NodeStepRequest, now: datetime) -> Ending | None:
    """A refusal if the step may not act now, None if it may."""
    try:
        boot_id = machine.boot_id()
    except (OSError, ValueError):
        return refused(Reason.BOOT_UNKNOWN)
    if boot_id != request.boot_id:
        return refused(Reason.BOOT_CHANGED)
    return refused(Reason.TOO_LATE) if now >= request.not_after else None


def report(request: NodeStepRequest, machine: Machine, ending: Ending) -> NodeStepReport:
    """The answer of a step; the boot id is the one that stands at its end."""
    try:
        boot_id = machine.boot_id()
    except (OSError, ValueError):
        boot_id = ""
    return NodeStepReport(
        operation=request.operation,
        step=request.step,
        result=ending.result,
        boot_id=boot_id,
        reason=ending.reason,
        findings=ending.findings,
    )
