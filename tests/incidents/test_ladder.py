import pytest

from fleet.outcome import Outcome, OutcomeKind
from fleet.step import REPAIRS, Step
from policies.guards import GUARDS
from policies.ladder import FIRST, LADDER, Ending, Guard, Move, On, as_mermaid, as_text
from policies.reading import read_outcome
from policies.scene import SERVING
from policies.timers import TIMERS
from workflows.interrupts import INTERRUPTS
from workflows.timing import TIMING

WAITING = {Step.TOLERATE, Step.PROBATION, Step.HAND_OFF}
"""Stages that are not asked of an activity."""
ASKED = set(Step) - WAITING
PROVEN = (Step.END_JOB, Step.RESET_GPU, Step.REBOOT)
"""Repairs after which the machine is looked at; one that was replaced is gone."""
HARMFUL = {*REPAIRS, Step.DRAIN}
MOVES = [move for row in (FIRST, *LADDER.values()) for move in row]


def test_every_row_ends_with_a_move_that_always_holds():
    for key, row in LADDER.items():
        assert row[-1].when is Guard.ALWAYS, key
        assert not row[-1].wait, key
        assert [each.when for each in row].index(Guard.ALWAYS) == len(row) - 1, key


def test_every_guard_has_exactly_one_meaning():
    assert {each.when for each in MOVES if each.wait} == set(TIMERS)
    assert {each.when for each in MOVES if not each.wait} == set(GUARDS)
    assert set(TIMERS) | set(GUARDS) == set(Guard)


@pytest.mark.parametrize("step", sorted(ASKED - set(SERVING)))
@pytest.mark.parametrize("kind", sorted(set(OutcomeKind) - {OutcomeKind.SUPERSEDED}))
def test_every_end_of_a_step_has_a_row(step, kind):
    """Superseded has none: the node is gone, or is another object and is held again first."""
    assert (step, read_outcome(step, Outcome(kind))) in LADDER


def test_what_an_incident_waits_in_is_never_asked_of_an_activity():
    assert {step for step, _ in LADDER if step} == ASKED - set(SERVING)


def test_a_repair_leads_to_a_verify_and_to_nothing_else():
    for step in PROVEN:
        assert {move.to for move in LADDER[step, On.DONE]} == {Step.VERIFY}


def test_only_a_passed_verify_or_positive_health_leads_to_release():
    for (step, on), row in LADDER.items():
        for move in row:
            if move.to is Step.RELEASE and step is not Step.RELEASE:
                assert move.when in (Guard.RECOVERED, Guard.PROVEN), (step, on)


def test_unclear_never_leads_to_a_repair_of_a_node_that_answers():
    row = LADDER[Step.VERIFY, On.UNCLEAR]
    handed_off = row.index(Move(Step.HAND_OFF, Guard.ANSWERS))
    assert not HARMFUL & {move.to for move in row[:handed_off]}


def test_a_reset_a_reboot_or_a_replace_that_has_begun_is_never_cut_short():
    for step in (Step.RESET_GPU, Step.REBOOT, Step.REPLACE):
        assert INTERRUPTS[step] == frozenset()


def test_what_was_replaced_is_over_and_needs_no_release():
    moves = LADDER[Step.REPLACE, On.DONE]
    assert [(each.to, each.when) for each in moves] == [
        (Step.HAND_OFF, Guard.REHEARSED),
        (Ending.END, Guard.ALWAYS),
    ]


def test_every_step_that_is_performed_says_what_stops_it_and_how_long_it_may_take():
    assert set(TIMING) == ASKED
    assert set(INTERRUPTS) == ASKED


def test_the_table_can_be_read_as_text_and_as_a_picture():
    assert "reset-gpu, done: go to verify" in as_text()
    assert "reset_gpu --> verify: done" in as_mermaid()
