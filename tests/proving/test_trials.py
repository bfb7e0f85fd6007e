"""Who is tried with whom, what is made of it, and that nobody is blamed for one pair."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.check import PAIRS
from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import HOST
from fleet.proof import Proof, Why, format_proof
from fleet.proving import ProofEnd, ProveTask
from policies.amounts import Percent
from policies.flocks import (
    LEAST,
    due_for_pairs,
    flock_of,
    flocks,
    room_for_pairs,
    task_in_pairs,
)
from policies.pairs_terms import Pairs
from policies.pairwise import MOST_PEERS, Course, judge
from policies.scopes import ScopeLabels
from policies.trial import FAILED_BY, Tried, courses, next_round, tried, words
from tests.cluster import FAULT, mark
from tests.proving.nodes import a_node, taint

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HALF = Percent(500)
FAST, SLOW = 48e9, 5e9
DONE = OutcomeKind.SUCCEEDED


def side(code: str = "", pace: float = 0.0) -> Finding:
    verdict = Verdict.UNKNOWN if code else Verdict.OK
    return Finding(PAIRS, HOST, verdict, code=code and f"pairs:{code}", value=pace)


@pytest.mark.parametrize(
    ("sides", "course", "code", "pace"),
    [
        ((side("", FAST), side("", SLOW)), Course.WELL, "", SLOW),
        ((side("hung"), side("", FAST)), Course.FAILED, "pairs:hung", 0.0),
        ((side("hung"), side("broken")), Course.FAILED, "pairs:hung", 0.0),
        ((side("broken"), side("wrong")), Course.FAILED, "pairs:wrong", 0.0),
        ((side("slow", SLOW), side("slow", SLOW)), Course.FAILED, "pairs:slow", SLOW),
        ((side("hung"), side("alone")), Course.UNKNOWN, "pairs:alone", 0.0),
        ((side("no-backend"), side("no-backend")), Course.UNKNOWN, "pairs:no-backend", 0.0),
        ((side("wrong"),), Course.UNKNOWN, "pairs:untold", 0.0),
        ((), Course.UNKNOWN, "pairs:untold", 0.0),
    ],
)
def test_only_what_happened_to_two_that_met_is_a_course(sides, course, code, pace):
    found = tried(("b", "a"), Outcome(DONE, findings=sides))
    assert found == Tried("a", "b", course, code, pace)


@pytest.mark.parametrize("kind", [each for each in OutcomeKind if each is not DONE])
def test_a_pair_that_was_not_brought_to_its_end_says_nothing(kind):
    found = tried(("a", "b"), Outcome(kind, "in-use", findings=(side("wrong"), side("wrong"))))
    assert (found.course, found.code) == (Course.UNKNOWN, "in-use")


def hold_a_trial(nodes, sick, how="hung", pace=SLOW):
    """All rounds against the truth; each round's pairs are disjoint."""
    trial: list[Tried] = []
    for _ in range(2 * len(nodes) + MOST_PEERS):
        wanted = next_round(nodes, trial, HALF)
        if not wanted:
            break
        assert len({name for pair in wanted for name in pair}) == 2 * len(wanted)
        for one, other in wanted:
            bad = bool({one, other} & sick)
            if how == "slow":
                trial.append(Tried(one, other, Course.WELL, "", pace if bad else FAST))
            else:
                course = Course.FAILED if bad else Course.WELL
                trial.append(Tried(one, other, course, f"pairs:{how}" if bad else "", 0.0))
    else:
        raise AssertionError("a trial has an end")
    return trial, judge(nodes, courses(trial, HALF))


many = st.integers(LEAST, 9).flatmap(
    lambda size: st.tuples(
        st.just([f"n{index}" for index in range(size)]), st.integers(0, size - 1)
    )
)


@given(fleet=many, how=st.sampled_from(["hung", "slow"]))
@settings(max_examples=60)
def test_the_odd_one_of_any_three_or_more_is_found_and_nobody_else(fleet, how):
    nodes, index = fleet
    _, judgement = hold_a_trial(nodes, {nodes[index]}, how)
    assert judgement.odd == (nodes[index],)
    assert len(judgement.well) == len(nodes) - 1


@given(fleet=many)
@settings(max_examples=30)
def test_sound_nodes_are_all_cleared(fleet):
    nodes, _ = fleet
    trial, judgement = hold_a_trial(nodes, set(), "slow")
    assert judgement.well == tuple(nodes)
    assert len(trial) <= len(nodes)


outcomes = st.sampled_from(
    [(Course.WELL, FAST), (Course.WELL, SLOW), (Course.FAILED, 0.0), (Course.UNKNOWN, 0.0)]
)


@given(
    trial=st.lists(
        st.tuples(st.sampled_from(list(combinations("abcdef", 2))), outcomes), max_size=12
    )
)
@settings(max_examples=80)
def test_whoever_is_told_to_be_odd_was_in_two_pairs_that_failed(trial):
    pairs = [Tried(one, other, course, "", pace) for (one, other), (course, pace) in trial]
    judgement = judge("abcdef", courses(pairs, HALF))
    for node in judgement.odd:
        failed = {
            frozenset((each.first, each.second))
            for each in courses(pairs, HALF)
            if each.course is Course.FAILED and node in (each.first, each.second)
        }
        assert len(failed) >= 2


def test_two_that_fail_with_each_other_are_both_unknown_and_nobody_is_blamed():
    trial, judgement = hold_a_trial(["a", "b"], {"a"})
    told = words(judgement, trial, HALF, one_fabric=False)
    assert len(trial) == 1
    assert {each.end for each in told.values()} == {ProofEnd.UNKNOWN}
    assert "no third node could tell" in told["a"].because


def test_where_no_pair_can_be_told_of_few_are_tried():
    trial: list[Tried] = []
    while wanted := next_round("abcdef", trial, HALF):
        trial += [Tried(*each, Course.UNKNOWN, "pairs:no-backend") for each in wanted]
    assert len(trial) <= 7, "fifteen pairs would be all"


@pytest.mark.parametrize(
    ("how", "one_fabric", "fault"),
    [
        ("hung", False, FaultName.NIC_DEGRADED),
        ("broken", False, FaultName.NIC_DEGRADED),
        ("hung", True, FaultName.FABRIC_NOT_READY),
        ("wrong", True, FaultName.WRONG_RESULTS),
        ("slow", False, FaultName.SLOW),
    ],
)
def test_what_the_odd_one_is_told_to_have(how, one_fabric, fault):
    nodes = ["a", "b", "c", "d"]
    trial, judgement = hold_a_trial(nodes, {"b"}, how)
    told = words(judgement, trial, HALF, one_fabric)
    assert [each for each in nodes if told[each].end is ProofEnd.FOUND] == ["b"]
    finding = told["b"].finding
    assert finding
    assert (finding.fault, finding.code, finding.part) == (fault, f"pairs:{how}", HOST)
    assert finding.code in FAILED_BY
    assert "with a" in finding.evidence
    assert all(told[each].end is ProofEnd.PROVEN and not told[each].finding for each in "acd")


def test_a_pair_that_is_a_little_slower_is_none():
    _, judgement = hold_a_trial(["a", "b", "c", "d"], {"b"}, "slow", pace=0.6 * FAST)
    assert judgement.odd == ()


WEEK = Pairs()


def proof(**ago: timedelta) -> str:
    return format_proof(Proof(**{name: NOW - each for name, each in ago.items()}))


def test_due_is_who_was_not_tried_with_others_for_long_and_first_who_was_odd():
    nodes = [
        a_node("never"),
        a_node("old", proof(paired=timedelta(days=8))),
        a_node("fresh", proof(paired=timedelta(days=6))),
        a_node("untold", proof(unpaired=timedelta(hours=20))),
        a_node("untold-long-ago", proof(unpaired=timedelta(days=2))),
        a_node("odd", proof(unpaired=timedelta(hours=1)), taints=[taint(Why.ODD)]),
        a_node("odd-and-in-an-incident", taints=[taint(Why.ODD)], marked=mark()),
        a_node("odd-still", taints=[taint(Why.ODD)], faults=(FAULT,)),
        a_node("swept", taints=[taint(Why.SWEEP)]),
        a_node("sick", faults=(FAULT,)),
    ]
    late, partners = due_for_pairs(nodes, WEEK, NOW)
    assert [each.identity.name for each in late] == ["odd", "never", "old", "untold-long-ago"]
    assert [each.identity.name for each in partners] == ["fresh", "untold"]
    assert [task_in_pairs(each).why for each in late[:2]] == [Why.ODD, Why.PAIRS]


def test_who_was_left_out_by_a_trial_takes_room_unless_it_is_to_be_tried_again():
    odd = a_node("odd", taints=[taint(Why.ODD)])
    still = a_node("still", taints=[taint(Why.ODD)], faults=(FAULT,))
    out = a_node("out", taints=[taint(Why.PAIRS)])
    assert room_for_pairs([odd], WEEK, NOW) == 4
    assert room_for_pairs([odd, still], WEEK, NOW) == 3
    assert room_for_pairs([out, still], WEEK, NOW) == 2


POOL, RACK, CLIQUE = "gpumend.io/pool", "topology.kubernetes.io/rack", "nvidia.com/gpu.clique"


def test_nodes_are_tried_with_those_that_share_what_policy_says_and_have_as_many_gpus():
    labels = {
        "a1": {POOL: "a", RACK: "r1"},
        "a2": {POOL: "a", RACK: "r2"},
        "b1": {POOL: "b", CLIQUE: "x.1"},
        "b2": {POOL: "b", CLIQUE: "x.1"},
        "b3": {POOL: "b", CLIQUE: "x.2"},
        "bare": {},
    }
    nodes = [replace(a_node(name), labels=given) for name, given in labels.items()]
    four = replace(nodes[0], identity=replace(nodes[0].identity, name="a4"))
    nodes.append(replace(four, allocatable={"nvidia.com/gpu": "4"}))

    def of(pairs: Pairs) -> list[tuple[list[str], bool]]:
        found: dict[str, list[ProveTask]] = {}
        for node in nodes:
            found.setdefault(flock_of(node, pairs, ScopeLabels()), []).append(task_in_pairs(node))
        return [
            ([task.node.name for task in each.tasks], each.one_fabric) for each in flocks(found)
        ]

    assert of(WEEK) == [(["a1", "a2"], False), (["b1", "b2"], True)]
    assert of(WEEK.model_copy(update={"within": ("pool", "rack")})) == [(["b1", "b2", "b3"], False)]
    assert of(WEEK.model_copy(update={"within": (f"label:{CLIQUE}",)}))[0][0] == [
        "a1",
        "a2",
        "bare",
    ]
