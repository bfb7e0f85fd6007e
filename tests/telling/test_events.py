"""What a step's end and a question say as Kubernetes Events, and what they must never say."""

import pytest

from activities.node_event import END, MESSAGE_LIMIT, STEP, EventType, manifest_of
from activities.step_events import event_of_step, event_of_telling
from fleet.finding import Finding, Verdict
from fleet.names import MARK_ANNOTATION
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import Part
from fleet.reason import HOLD_REMOVED, QUEUED
from fleet.step import Step
from fleet.telling import Matter, Telling
from tests.cluster import FAULT, INCIDENT, identity, now, request_for

NODE = identity()
SECRET = "default/trainer-0 GPU-5f1e2d3c-0000-1111-2222-333344445555"
SICK = (Finding("memory", Part("gpu:3"), Verdict.FAULT, FAULT.name),)


def event(step, kind=OutcomeKind.SUCCEEDED, reason="", findings=(), **request):
    outcome = Outcome(kind, reason, f"evicting {SECRET}", findings=findings)
    found = event_of_step(request_for(NODE, step, **request), outcome)
    assert found
    return found


@pytest.mark.parametrize(
    ("step", "kind", "reason", "findings", "says", "type_"),
    [
        (Step.HOLD, OutcomeKind.SUCCEEDED, "", (), "IncidentHeld", "Normal"),
        (Step.LEASE, OutcomeKind.SUCCEEDED, "", (), "IncidentLeased", "Normal"),
        (Step.LEASE, OutcomeKind.TRANSIENT, QUEUED, (), "IncidentWaits", "Normal"),
        (Step.DRAIN, OutcomeKind.SUCCEEDED, "", (), "IncidentDrained", "Normal"),
        (Step.DRAIN, OutcomeKind.CANCELLED, HOLD_REMOVED, (), "IncidentStepStopped", "Normal"),
        (Step.RESET_GPU, OutcomeKind.SUCCEEDED, "", (), "IncidentReset", "Normal"),
        (Step.REBOOT, OutcomeKind.AMBIGUOUS, "exhausted", (), "IncidentStepFailed", "Warning"),
        (Step.VERIFY, OutcomeKind.SUCCEEDED, "", (), "IncidentVerified", "Normal"),
        (Step.VERIFY, OutcomeKind.PERMANENT, "", SICK, "IncidentNotVerified", "Warning"),
        (Step.RELEASE, OutcomeKind.SUCCEEDED, "", (), "IncidentReleased", "Normal"),
        (Step.CLOSE, OutcomeKind.SUCCEEDED, "", (), "IncidentClosed", "Normal"),
    ],
)
def test_each_end_of_a_step_has_its_reason(step, kind, reason, findings, says, type_):
    found = event(step, kind, reason, findings)
    assert (found.reason, found.type) == (says, EventType(type_))
    assert found.annotations[STEP] == step.value
    assert "uncontained-memory on gpu:3 (xid:95)" in found.message


SERVING = (Step.RECALL, Step.GIVE_BACK, Step.IDLE)


@pytest.mark.parametrize("step", SERVING)
def test_steps_that_only_serve_others_say_nothing(step):
    assert event_of_step(request_for(NODE, step), Outcome(OutcomeKind.SUCCEEDED)) is None


@pytest.mark.parametrize("step", [each for each in Step if each not in SERVING])
@pytest.mark.parametrize("kind", list(OutcomeKind))
def test_no_event_carries_the_sentence_of_an_outcome(step, kind):
    said = str(manifest_of(event(step, kind, reason=f"see {SECRET}"), now()))
    assert "trainer-0" not in said
    assert "5f1e2d3c" not in said


def test_what_is_asked_or_needed_stays_out_of_the_event_and_the_run_is_named():
    telling = Telling(
        Matter.ASK, "k1", INCIDENT, NODE, (FAULT,), (f"evict {SECRET}?",), (), ("approve", "deny")
    )
    found = event_of_telling(telling)
    assert found.reason == "IncidentAsks"
    assert found.message.endswith(f"see workflow {telling.workflow_id}")
    assert "approve or deny" in found.message
    assert "trainer" not in found.message


def test_a_hand_off_names_its_incident_as_the_observer_reads_it():
    telling = Telling(Matter.HAND_OFF, "k1", INCIDENT, NODE, (), ("look at it",))
    manifest = manifest_of(event_of_telling(telling), now())
    assert manifest["reason"] == "IncidentHandedOff"
    assert manifest["metadata"]["annotations"][MARK_ANNOTATION] == INCIDENT


def test_the_close_says_how_the_incident_ended():
    assert event(Step.CLOSE, end="repaired").annotations[END] == "repaired"
    assert END not in event(Step.CLOSE).annotations


def test_a_message_is_bounded_however_many_faults_stand():
    found = event(Step.HOLD, faults=(FAULT,) * 500)
    assert "and 496 more" in found.message
    assert len(manifest_of(found, now())["message"]) <= MESSAGE_LIMIT


def test_a_repeat_is_the_same_event_and_another_operations_end_another():
    first, repeat, other = (event(Step.DRAIN, operation=each) for each in ("i-3", "i-3", "i-5"))
    assert first.name == repeat.name != other.name


def test_an_ask_that_goes_on_waiting_is_said_once_while_its_event_stands():
    waits = {
        event(Step.LEASE, OutcomeKind.TRANSIENT, QUEUED, operation=each).name
        for each in ("i-3-lease", "i-5-lease")
    }
    assert len(waits) == 1


def test_different_ends_and_different_incidents_are_different_events():
    ends = event(Step.DRAIN), event(Step.DRAIN, incident="i2"), event(Step.REBOOT)
    assert len({each.name for each in ends}) == 3
    long = event_of_step(
        request_for(identity("n" * 253), Step.HOLD), Outcome(OutcomeKind.SUCCEEDED)
    )
    assert long
    assert len(long.name) <= 253
