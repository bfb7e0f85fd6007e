"""What a message changes in an incident, and which step it stops."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.decision import Act
from fleet.fault import Advice, Fault, FaultName
from fleet.incident import Incident
from fleet.message import HoldRemoved, NodeGone, Reported
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import HOST
from fleet.reason import MARK_REMOVED
from fleet.report import Report
from fleet.request import StepRequest
from fleet.step import Step
from policies.decide import decide
from policies.document import default_policy
from tests.incidents.virtual import START, an_opening
from workflows.interrupts import INTERRUPTS, Interruption, interrupts

MINUTE = timedelta(minutes=1)
OPENING = an_opening()
FRESH = Incident.open(OPENING, START)


def performed(incident: Incident, step: Step, at=START) -> Incident:
    request = StepRequest("o", step, OPENING.mark.id, incident.node, "b1", at + MINUTE)
    return incident.with_step(request, at).with_outcome(Outcome(OutcomeKind.SUCCEEDED), at)


HELD = performed(FRESH, Step.HOLD)


@pytest.mark.parametrize("step", INTERRUPTS)
@pytest.mark.parametrize(("uid", "ours"), [("", True), ("u1", True), ("u9", False)])
def test_a_deletion_stops_what_may_be_stopped_if_it_is_of_this_node(step, uid, ours):
    stops = ours and Interruption.NODE_GONE in INTERRUPTS[step]
    assert interrupts(step, NodeGone(uid, START), HELD) is stops


def test_whom_a_fault_hit_stays_known_while_it_stands_and_is_in_the_facts():
    hit = Fault(HOST, FaultName.GPU_LOST, "xid:79", Advice.REBOOT, 1, START, pods=("one",))
    incident = FRESH
    for after, faults in enumerate(
        ((hit,), (replace(hit, pods=("two",)),), (replace(hit, pods=()),))
    ):
        at = START + after * MINUTE
        report = Report(OPENING.node, "b1", faults, (), at)
        incident = incident.with_message(Reported(report, at))
    assert incident.sightings[0].fault.pods == ("one", "two")
    facts = decide(default_policy(), incident, START + 3 * MINUTE).basis.facts
    assert facts[0].endswith(", hit pod one, two")


def reported(incident: Incident, uid: str, after: timedelta) -> Incident:
    node = replace(OPENING.node, uid=uid)
    report = Report(node, "b1", (), (), START + after)
    return incident.with_message(Reported(report, START + after))


@pytest.mark.parametrize(
    ("gone", "uid", "after", "there"),
    [
        ("u1", "u1", 2 * MINUTE, False),  # what was deleted never comes back
        ("u1", "u2", 2 * MINUTE, True),
        ("", "u1", 2 * MINUTE, True),  # what was missing in a list may be there again
        ("", "u1", -MINUTE, False),
        ("", "u2", 2 * MINUTE, True),
    ],
)
def test_a_report_ends_a_deletion_only_if_it_is_of_something_later(gone, uid, after, there):
    incident = HELD.with_message(NodeGone(gone, START + MINUTE))
    assert (reported(incident, uid, after).node_gone is None) is there


def test_a_node_object_made_anew_is_held_before_anything_else_however_well_it_says_that_it_is():
    policy, at = default_policy(), START + 2 * MINUTE
    well = replace(OPENING.node, uid="u2")
    reboot = StepRequest("r", Step.REBOOT, OPENING.mark.id, HELD.node, "b1", at)
    booted = HELD.with_step(reboot, START).with_outcome(Outcome(OutcomeKind.SUCCEEDED), START)
    back = booted.with_message(Reported(Report(well, "b2", (), (), at, witness=True), at))
    asked = decide(policy, back, at)
    assert isinstance(asked, Act)
    assert (asked.request.step, asked.request.force) == (Step.HOLD, True)
    outcome = Outcome(OutcomeKind.CANCELLED, MARK_REMOVED, uid="u2")
    too_early = back.with_step(asked.request, at).with_outcome(outcome, at)
    again = decide(policy, too_early, at + MINUTE)
    assert isinstance(again, Act)
    assert again.request.step is Step.HOLD


def test_a_node_object_made_anew_by_our_repair_is_looked_at_before_anything_is_concluded():
    policy, at = default_policy(), START + 2 * MINUTE
    lost = Fault(HOST, FaultName.GPU_LOST, "xid:79", Advice.REBOOT, 1, START)
    sick = HELD.with_message(Reported(Report(OPENING.node, "b1", (lost,), (), START), START))
    reboot = StepRequest("r", Step.REBOOT, OPENING.mark.id, HELD.node, "b1", at, faults=(lost,))
    anew = Outcome(OutcomeKind.SUCCEEDED, boot_id="b2", uid="u2")
    booted = sick.with_step(reboot, at).with_outcome(anew, at)
    back = replace(booted, node=replace(OPENING.node, uid="u2"))
    hold = StepRequest("h", Step.HOLD, OPENING.mark.id, back.node, "b2", at + MINUTE)
    held = back.with_step(hold, at).with_outcome(Outcome(OutcomeKind.SUCCEEDED), at)
    comes = decide(policy, held, at)
    assert isinstance(comes, Act)
    assert comes.request.step is Step.VERIFY


def test_a_hold_that_is_said_to_be_off_again_changes_nothing():
    once = HELD.with_message(HoldRemoved("u1", False, START + MINUTE))
    assert not once.held
    assert once.with_message(HoldRemoved("u1", False, START + 2 * MINUTE)) == once


def test_a_mark_that_goes_after_its_hold_is_news():
    once = HELD.with_message(HoldRemoved("u1", False, START + MINUTE))
    twice = once.with_message(HoldRemoved("u1", True, START + 2 * MINUTE))
    assert twice.hold_removed == HoldRemoved("u1", True, START + 2 * MINUTE)
    assert twice.with_message(HoldRemoved("u1", False, START + 3 * MINUTE)) == twice


def test_a_hold_that_was_put_on_again_may_be_taken_off_again():
    once = HELD.with_message(HoldRemoved("u1", False, START + MINUTE))
    again = performed(once, Step.HOLD, START + 2 * MINUTE)
    assert again.held
    assert not again.with_message(HoldRemoved("u1", False, START + 3 * MINUTE)).held


def test_a_removal_from_another_node_object_leaves_this_one_held():
    assert HELD.with_message(HoldRemoved("u9", False, START + MINUTE)).held
