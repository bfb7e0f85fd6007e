"""What the end of a step, and what people are told, say as Kubernetes Events: one table. Pure.

Of an outcome only its kind and its code are said: its sentence may name Pods.
"""

from collections.abc import Mapping

from activities.node_event import END, STEP, EventType, NodeEvent, code_of, name_faults
from fleet.fault import camel_case
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import QUEUED
from fleet.request import StepRequest
from fleet.step import Step
from fleet.telling import Matter, Telling

_DONE: Mapping[Step, tuple[str, str]] = {
    Step.HOLD: ("IncidentHeld", "held: no new work lands here"),
    Step.LEASE: ("IncidentLeased", "the disruption budget lent its lease"),
    Step.DRAIN: ("IncidentDrained", "emptied"),
    Step.END_JOB: ("IncidentJobEnded", "the job's pods have left"),
    Step.RESET_GPU: ("IncidentReset", "GPU reset"),
    Step.REBOOT: ("IncidentRebooted", "rebooted"),
    Step.REPLACE: ("IncidentReplaced", "the machine was given back for another"),
    Step.VERIFY: ("IncidentVerified", "checked: well"),
    Step.RELEASE: ("IncidentReleased", "given back: takes work again"),
    Step.CLOSE: ("IncidentClosed", "the incident is over"),
}
_SILENT = (Step.RECALL, Step.GIVE_BACK, Step.IDLE)
"""Steps that serve others and change nothing that anybody waits for; all of a rehearsal's are."""
_STOPPED = (OutcomeKind.CANCELLED, OutcomeKind.SUPERSEDED)


def event_of_step(request: StepRequest, outcome: Outcome) -> NodeEvent | None:
    """What the end of a step says; None for steps that only serve others."""
    step = request.step
    if step in _SILENT:
        return None
    reason, what, kind = _words(step, outcome)
    code = code_of(outcome.reason)
    faults = name_faults(request.faults)
    message = what + (f" ({code})" if code else "") + (f": {faults}" if faults else "")
    end = code_of(request.end) if step is Step.CLOSE else ""
    return NodeEvent(
        node=request.node,
        incident=request.incident,
        reason=reason,
        message=message,
        operation=request.operation,
        same=(step.value, code, "" if outcome.reason == QUEUED else request.operation),
        type=kind,
        annotations={STEP: step.value, **({END: end} if end else {})},
    )


def _words(step: Step, outcome: Outcome) -> tuple[str, str, EventType]:
    if outcome.kind is OutcomeKind.SUCCEEDED:
        done = f"Incident{camel_case(step.value)}", step.value
        return *_DONE.get(step, done), EventType.NORMAL
    if outcome.reason == QUEUED:
        return "IncidentWaits", "waits for the disruption budget", EventType.NORMAL
    if outcome.kind in _STOPPED:
        return "IncidentStepStopped", f"{step} stopped", EventType.NORMAL
    if step is Step.VERIFY and outcome.findings:
        return "IncidentNotVerified", "checked: still sick", EventType.WARNING
    return "IncidentStepFailed", f"{step}: {outcome.kind}", EventType.WARNING


_TOLD: Mapping[Matter, tuple[str, str]] = {
    Matter.ASK: ("IncidentAsks", "asks a person"),
    Matter.HAND_OFF: ("IncidentHandedOff", "handed to a person, still held"),
    Matter.FAULT: ("IncidentNoticed", "noticed, and nothing is held"),
    Matter.STORM: ("IncidentStorm", "too much is sick at once"),
}


def event_of_telling(telling: Telling) -> NodeEvent:
    """What is asked or needed is in the run that the message names: it may name Pods."""
    reason, what = _TOLD[telling.matter]
    faults = name_faults(telling.faults)
    asked = f"; {' or '.join(telling.answers)}" if telling.answers else ""
    message = f"{what}{asked}" + (f": {faults}" if faults else "")
    return NodeEvent(
        node=telling.node,
        incident=telling.incident,
        reason=reason,
        message=f"{message}; see workflow {telling.workflow_id}",
        operation=telling.key,
        same=(telling.key,),
        type=EventType.WARNING,
        annotations={STEP: telling.matter.value},
    )
