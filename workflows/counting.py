"""What an incident adds to the engine's figures: once, whatever is replayed.

Temporal's own meter knows a replay from the first time. Names and meanings are `fleet.figure`.
"""

from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from fleet.decision import Close
    from fleet.figure import ENDED, OPENED, REACHED
    from fleet.incident import Incident
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.request import StepRequest

NO_FAULT = "none"
"""Nothing was seen yet, or a person opened it."""


def count_begun(incident: Incident) -> None:
    """The first step of an incident is asked for."""
    if incident.operations == 0:
        workflow.metric_meter().create_counter(OPENED.name, OPENED.text).add(
            1, {"fault": fault_of(incident)}
        )


def count_step(incident: Incident, request: StepRequest, outcome: Outcome, now: datetime) -> None:
    """A step has ended; the first success of each is a mark that was reached."""
    kind = OutcomeKind.SUCCEEDED
    if outcome.kind is not kind or incident.last(request.step, kind):
        return
    seconds = max(0.0, (now - incident.opening.mark.opened).total_seconds())
    meter = workflow.metric_meter()
    histogram = meter.create_histogram_float(REACHED.name, REACHED.text)
    histogram.record(seconds, {"step": request.step.value})


def count_ended(incident: Incident, close: Close) -> None:
    """It is over."""
    workflow.metric_meter().create_counter(ENDED.name, ENDED.text).add(
        1, {"fault": fault_of(incident), "end": close.end.value}
    )


def fault_of(incident: Incident) -> str:
    """The fault that an incident goes by: the first that stands, else the first ever seen."""
    seen = incident.standing or incident.sightings
    return seen[0].fault.name.value if seen else NO_FAULT
