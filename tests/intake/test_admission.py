"""Who is held, and in which order."""

import pytest

from fleet.fault import FaultName
from fleet.mark import MarkState
from intake.admission import Refusal, new_mark, rank, refusal, worst
from tests.intake.cases import HOLD, NOW, PlainRules, a_fault, a_mark, a_node, a_report, later

SICK = a_fault()
RULES = PlainRules()


@pytest.mark.parametrize(
    ("node", "sick", "expected"),
    [
        (a_node(), SICK, None),
        (a_node(unschedulable=True), SICK, None),
        (a_node(), None, Refusal.HEALTHY),
        (a_node(labels={"gpumend.io/managed": "false"}), SICK, Refusal.UNMANAGED),
        (a_node(pause="being rewired"), SICK, Refusal.PAUSED),
        (a_node(pause=""), SICK, Refusal.PAUSED),
        (a_node(deleting=True), SICK, Refusal.DELETING),
        (a_node(a_mark(), [HOLD]), SICK, Refusal.MARKED),
        (a_node(a_mark(MarkState.PROBATION)), SICK, Refusal.MARKED),
        (a_node(mark_problem="not a mark"), SICK, Refusal.UNREADABLE_MARK),
        (a_node(cool_down=later(seconds=1)), SICK, Refusal.COOL_DOWN),
        (a_node(cool_down=NOW), SICK, None),
    ],
)
def test_a_node_is_held_only_where_nothing_speaks_against_it(node, sick, expected):
    assert refusal(node, sick, NOW) is expected


def test_a_fault_that_the_policy_does_not_hold_makes_nobody_sick():
    assert worst(a_report(a_fault(FaultName.APPLICATION)), RULES) is None


def test_what_is_unknown_makes_nobody_sick():
    assert worst(a_report(unknown=["monitor-silent"], witness=False), RULES) is None


def test_a_node_is_held_for_its_most_urgent_fault_then_its_oldest():
    old = a_fault(FaultName.THERMAL, since=later(hours=-1))
    older = a_fault(FaultName.POWER, since=later(hours=-2))
    assert worst(a_report(old, older), RULES) == older
    assert worst(a_report(old, older, SICK), RULES) == SICK


def test_in_a_storm_the_worst_come_first_and_a_node_without_a_fault_last():
    thermal = a_fault(FaultName.THERMAL, since=later(hours=-1))
    ranks = [
        rank(a_node(), SICK, RULES, NOW),
        rank(a_node(), thermal, RULES, NOW),
        rank(a_node(), a_fault(FaultName.POWER), RULES, NOW),
        rank(a_node(), None, RULES, NOW),
    ]
    assert ranks == sorted(ranks)


def test_a_mark_names_machine_and_instant_and_undoes_our_hold():
    mark = new_mark(a_node(), NOW)
    assert mark.id == "0a1b2c3d-20261129120000"
    assert (mark.state, mark.uid, mark.undo) == (MarkState.PENDING, "u1", ("taint",))
