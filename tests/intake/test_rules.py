"""The shipped policy, as intake asks it."""

from datetime import timedelta
from importlib.resources import files

import pytest

from fleet.fault import FaultName
from fleet.node import Condition
from intake.admission import worst
from intake.rules import PolicyRules
from policies.document import load
from policies.fault_terms import FaultTerms
from policies.schema import Policy
from tests.intake.cases import NOW, a_fault, a_node, condition, later


@pytest.fixture(scope="module")
def rules():
    text = files("policies").joinpath("default.yaml").read_text()
    return PolicyRules(load(text, "default.yaml"))


def saying(*manifests, **changes):
    return a_node(
        conditions=tuple(
            Condition(each["type"], each["status"], each["reason"], each["message"])
            for each in manifests
        ),
        **changes,
    )


READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}


def test_a_fault_in_a_condition_makes_a_node_sick(rules):
    report = rules.report(saying(READY, condition(a_fault())), NOW, False, None)
    sick = worst(report, rules)
    assert sick
    assert sick.name is FaultName.GPU_LOST


@pytest.mark.parametrize("name", [FaultName.APPLICATION, FaultName.MONITOR_SILENT])
def test_application_faults_and_silent_agents_hold_nobody(rules, name):
    assert not rules.holds(a_fault(name, "host"))


def test_a_silent_agent_moves_nothing_and_vouches_for_nothing(rules):
    report = rules.report(saying(READY, condition()), NOW, True, None)
    assert worst(report, rules) is None
    assert not report.clean


def test_what_others_say_keeps_the_instant_at_which_we_saw_it_first(rules):
    """R01."""
    down = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": ""}
    first = rules.report(saying(down), NOW, False, None)
    again = rules.report(saying({**down, "reason": "Other"}), later(minutes=5), False, first)
    assert [each.since for each in again.faults] == [NOW]


def test_what_jobs_may_stay_with_for_less_time_is_more_urgent(rules):
    assert rules.urgency(a_fault(FaultName.GPU_LOST)) < rules.urgency(
        a_fault(FaultName.CONTAINED_MEMORY)
    )


def test_scopes_come_from_the_node_s_labels(rules):
    node = a_node(labels={"gpumend.io/pool": "a", "topology.kubernetes.io/rack": "r1"})
    assert rules.scopes(node) == {"cluster": "c", "pool": "a", "rack": "r1"}


def test_the_cool_down_is_the_policy_s(rules):
    assert rules.cool_down == timedelta(hours=1)


@pytest.mark.parametrize(("hold", "notify", "tells"), [
    (False, True, True), (False, False, False), (True, True, False), (True, False, False),
])  # fmt: skip
def test_people_are_told_only_of_faults_that_policy_says_so_of_and_holds_nothing_for(
    hold, notify, tells
):
    terms = FaultTerms(hold=hold, notify=notify)
    policy = Policy(faults={FaultName.MONITOR_SILENT: terms})
    assert PolicyRules(policy).tells(a_fault(FaultName.MONITOR_SILENT, "host")) is tells
