"""How nodes stand by mark and hold, and what the watcher writes for them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.mark import MarkState, parse_mark
from fleet.node import NodeIdentity
from intake.marks import Act, Facts, Standing, let_go, next_write, reopen, standing
from intake.settings import Settings
from tests.intake.cases import HOLD, NODE, NOW, a_fault, a_mark, a_node, a_report, later

SETTINGS = Settings()
PENDING, OWNED, PROBATION = a_mark(), a_mark(MarkState.OWNED), a_mark(MarkState.PROBATION)
CORDONED = a_mark(MarkState.OWNED, undo=("taint", "cordon"))
SICK = a_fault()
REBORN = NodeIdentity("c", "n1", "u2", NODE.machine)
ANOTHER = NodeIdentity("c", "n1", "u2", "ffffffff")


def facts(**known):
    return Facts(NOW, a_report(), timedelta(hours=1), **known)


def act(node, **known):
    write = next_write(node, facts(**known), SETTINGS)
    return write and write.act


def mark_in(write):
    assert write
    return parse_mark(write.body["metadata"]["annotations"]["gpumend.io/incident"])


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (a_node(), Standing.FREE),
        (a_node(unschedulable=True), Standing.FREE),
        (a_node(taints=[HOLD]), Standing.ORPHAN),
        (a_node(mark_problem="x", taints=[HOLD]), Standing.UNREADABLE),
        (a_node(PENDING, [HOLD], identity=REBORN), Standing.STRAY),
        (a_node(PENDING, [HOLD]), Standing.PENDING),
        (a_node(PENDING), Standing.LET_GO),
        (a_node(OWNED, [HOLD]), Standing.OWNED),
        (a_node(OWNED), Standing.UNHELD),
        (a_node(OWNED, unschedulable=True), Standing.UNHELD),
        (a_node(CORDONED, unschedulable=True), Standing.OWNED),
        (a_node(CORDONED), Standing.UNHELD),
        (a_node(PROBATION), Standing.PROBATION),
    ],
)
def test_mark_and_hold_say_how_a_node_stands(node, expected):
    assert standing(node) is expected


@pytest.mark.parametrize(
    ("node", "known", "expected"),
    [
        (a_node(), {}, None),
        (a_node(), {"sick": SICK}, Act.HOLD),
        (a_node(), {"sick": SICK, "blocked": "breaker-open"}, None),
        (a_node(), {"sick": SICK, "let_go": True}, Act.COOL_DOWN),
        (a_node(cool_down=later(minutes=1)), {"sick": SICK, "let_go": True}, None),
        (a_node(), {"returning": "gpu-lost"}, Act.HOLD_RETURNED),
        (a_node(), {"returning": "", "blocked": "breaker-open"}, Act.HOLD_RETURNED),
        (a_node(pause="x"), {"returning": "gpu-lost"}, None),
        (a_node(cool_down=later(minutes=1)), {"returning": "gpu-lost"}, None),
        (a_node(taints=[HOLD]), {}, Act.ADOPT),
        (a_node(taints=[HOLD], pause="x"), {}, None),
        (a_node(PENDING, [HOLD], identity=REBORN), {}, Act.ADOPT),
        (a_node(PENDING, identity=REBORN), {}, Act.ADOPT),
        (a_node(PENDING, identity=ANOTHER), {"sick": SICK}, Act.DROP_MARK),
        (a_node(PENDING, [HOLD]), {"sick": SICK}, None),
        (a_node(PENDING, [HOLD]), {"clean_since": later(minutes=-4)}, None),
        (a_node(PENDING, [HOLD]), {"clean_since": later(minutes=-5)}, Act.WITHDRAW),
        (a_node(a_mark(undo=("taint", "cordon")), [HOLD]), {"clean_since": later(hours=-1)}, None),
        (a_node(PENDING), {"sick": SICK}, Act.COOL_DOWN),
        (a_node(OWNED, [HOLD]), {"sick": SICK}, None),
        (a_node(OWNED), {"sick": SICK}, None),
        (a_node(PROBATION), {"sick": SICK}, None),
        (a_node(mark_problem="x"), {"sick": SICK, "returning": ""}, None),
    ],
)
def test_the_watcher_writes_only_what_no_workflow_is_there_to_write(node, known, expected):
    assert act(node, **known) is expected


def test_a_lost_mark_is_replaced_without_touching_the_hold():
    write = next_write(a_node(taints=[HOLD]), facts(), SETTINGS)
    assert write
    assert "spec" not in write.body
    assert mark_in(write).undo == ("taint",)


def test_a_reborn_machine_keeps_its_incident_and_its_undo_record():
    node = a_node(CORDONED, [HOLD], identity=REBORN)
    mark = mark_in(next_write(node, facts(), SETTINGS))
    assert (mark.id, mark.uid, mark.state) == (CORDONED.id, "u2", MarkState.PENDING)
    assert mark.undo == ("taint", "cordon")


def test_another_machine_under_the_old_name_gets_a_mark_of_its_own():
    node = a_node(CORDONED, [HOLD], identity=ANOTHER)
    mark = mark_in(next_write(node, facts(), SETTINGS))
    assert (mark.machine, mark.undo) == ("ffffffff", ("taint",))
    assert mark.id != CORDONED.id


@pytest.mark.parametrize(
    ("node", "sick", "expected"),
    [
        (a_node(), None, None),
        (a_node(PENDING, [HOLD]), SICK, None),
        (a_node(OWNED, [HOLD]), None, Act.REOPEN),
        (a_node(OWNED), SICK, Act.REOPEN),
        (a_node(OWNED, [HOLD], identity=REBORN), SICK, None),
        (a_node(PROBATION), None, Act.DROP_MARK),
        (a_node(PROBATION), SICK, Act.REOPEN),
    ],
)
def test_a_mark_whose_run_is_gone_is_pending_again_unless_nothing_is_left_to_do(
    node, sick, expected
):
    write = reopen(node, sick)
    assert (write and write.act) is expected


def test_going_back_to_pending_keeps_id_and_undo_record():
    mark = mark_in(reopen(a_node(CORDONED, [HOLD]), None))
    assert mark == replace(CORDONED, state=MarkState.PENDING)


def test_a_sick_node_in_probation_without_a_run_is_held_again():
    write = reopen(a_node(PROBATION), SICK)
    assert write
    assert [each["key"] for each in write.body["spec"]["taints"]] == ["gpumend.io/hold"]
    assert mark_in(write).id == PROBATION.id


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (a_node(OWNED, [HOLD]), a_node(), True),
        (a_node(PENDING, [HOLD]), a_node(), True),
        (a_node(OWNED), a_node(), True),
        (a_node(PROBATION), a_node(), False),
        (a_node(OWNED, [HOLD]), a_node(OWNED), False),
        (a_node(OWNED, [HOLD]), a_node(taints=[HOLD]), False),
        (a_node(OWNED, [HOLD]), a_node(identity=REBORN), False),
        (a_node(), a_node(), False),
    ],
)
def test_a_person_took_the_hold_away_where_hold_and_mark_vanish_together(before, after, expected):
    assert let_go(before, after) is expected
