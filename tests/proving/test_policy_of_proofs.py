"""Which nodes are proven when, and what a try means: tables over pure functions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from console.node_facts import NodeFacts
from console.show import IS_UNPROVEN, _cluster_says
from fleet.fault import FaultName
from fleet.names import MANAGED_LABEL
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.proof import IN_SERVICE, NEVER, Proof, Why, format_proof, parse_proof
from fleet.proving import ProofEnd
from policies.document import PolicyErrors, default_policy, load
from policies.explain import render_proving
from policies.prove_terms import ProveTerms
from policies.proving import (
    after,
    due,
    in_turn,
    room,
    sick,
    task_of,
    why_not,
    without_harmless,
)
from policies.proving_terms import Proving, Sweep
from tests.cluster import FAULT, HOLD, mark
from tests.proving.nodes import OK, SICK, UNKNOWN, a_node, taint

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
WEEK = Sweep(every=timedelta(days=7))
TOLD = replace(SICK, fault=FaultName.THERMAL)
"""A fault that policy only tells people of."""
LATER = "2026-11-29T13:00:00Z"


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({}, ""),
        ({"marked": mark()}, "incident"),
        ({"taints": [HOLD]}, "incident"),
        ({"ready": "False"}, "not-ready"),
        ({"ready": "Unknown"}, "not-ready"),
        ({"boot": ""}, "not-ready"),
        ({"unschedulable": True}, "cordoned"),
    ],
)
def test_why_a_node_is_not_to_be_proven_now(about, why):
    assert why_not(a_node(**about), NOW) == why


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", Why.JOINED),
        ("sweep", Why.SWEEP),
        ("found", Why.FOUND),
        ("pairs", Why.PAIRS),
        ("karpenter", Why.JOINED),
    ],
)
def test_the_value_of_the_taint_says_why_and_anything_foreign_is_a_new_node(value, why):
    node = a_node(taints=[{**taint(), "value": value}])
    task = task_of(node, NOW)
    assert task is not None
    assert (task.node, task.boot_id, task.why) == (node.identity, node.boot_id, why)


def test_nobody_is_asked_for_without_the_taint_or_while_an_incident_has_the_node():
    assert task_of(a_node(), NOW) is None
    assert task_of(a_node(taints=[taint(Why.ODD)]), NOW) is None, "only a trial tells"
    assert task_of(a_node(taints=[taint()], marked=mark()), NOW) is None
    assert task_of(a_node(taints=[taint(Why.FOUND)], unschedulable=True), NOW) is None


@pytest.mark.parametrize("about", [{"marked": mark()}, {"unschedulable": True}, {"ready": "False"}])
@pytest.mark.parametrize("why", IN_SERVICE)
def test_what_a_sweep_left_on_a_node_is_asked_for_whatever_speaks_against_a_proof(about, why):
    task = task_of(a_node(taints=[taint(why)], **about), NOW)
    assert task is not None
    assert task.why is why


def proof(proven: datetime | None = None, tried: datetime | None = None) -> str:
    return format_proof(Proof(proven, tried))


FLEET = {
    "never": "",
    "old": proof(ago(days=8), ago(days=8)),
    "older": proof(ago(days=9), ago(days=9)),
    "fresh": proof(ago(days=6)),
    "tried": proof(ago(days=30), ago(hours=20)),
    "tried-long-ago": proof(ago(days=30), ago(days=2)),
}


def fleet() -> list[NodeState]:
    return [a_node(name, text) for name, text in FLEET.items()]


def test_due_is_who_was_not_proven_for_long_the_one_looked_at_longest_ago_first():
    names = [each.identity.name for each in due(fleet(), WEEK, NOW)]
    assert names == ["never", "older", "old", "tried-long-ago"]


@pytest.mark.parametrize(
    "about",
    [
        {"taints": [taint()]},
        {"taints": [taint(Why.SWEEP)]},
        {"marked": mark()},
        {"faults": (FAULT,)},
        {"ready": "False"},
        {"unschedulable": True},
    ],
)
def test_never_due_is_a_node_that_is_sick_taken_or_not_in_service(about):
    assert due([a_node(**about)], WEEK, NOW) == ()


def test_a_node_whose_agent_says_nothing_or_speaks_of_another_boot_is_not_well():
    well = a_node()
    assert not sick(well, NOW)
    silent = [each for each in well.conditions if each.type == "Ready"]
    assert sick(replace(well, conditions=tuple(silent)), NOW)
    assert sick(replace(well, boot_id="boot-2"), NOW)
    assert sick(a_node(faults=(FAULT,)), NOW)


def test_where_many_are_busy_each_turn_looks_at_others():
    late = fleet()
    seen = [each.identity.name for turn in range(3) for each in in_turn(late, turn, 2)]
    assert sorted(seen) == sorted(FLEET)
    assert in_turn(late, 5, 6) == tuple(late)


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], 2),
        ([{"taints": [taint()]}], 2),
        ([{"taints": [taint(Why.SWEEP)]}], 1),
        ([{"taints": [taint(Why.FOUND)]}], 1),
        ([{"taints": [taint(Why.FOUND)], "marked": mark()}], 2),
        ([{"taints": [taint(Why.FOUND)]}] * 3, 0),
    ],
)
def test_who_was_taken_and_is_nobodys_incident_takes_room(others, left):
    nodes = [a_node(f"n{number}", **about) for number, about in enumerate(others)]
    assert room(nodes, Sweep(at_once=2)) == left


@pytest.mark.parametrize("theirs", [{"labels": {MANAGED_LABEL: "false"}}, {"pause": "mine"}])
def test_a_node_that_people_keep_to_themselves_stops_no_sweep(theirs):
    node = replace(a_node(taints=[taint(Why.FOUND)]), **theirs)
    assert room([node], Sweep(at_once=1)) == 1


KIND = OutcomeKind


@pytest.mark.parametrize(
    ("outcome", "what"),
    [
        (Outcome(KIND.SUCCEEDED, findings=(OK,)), ProofEnd.PROVEN),
        (Outcome(KIND.PERMANENT, findings=(SICK, UNKNOWN)), ProofEnd.FOUND),
        (Outcome(KIND.PERMANENT, "refused"), ProofEnd.UNKNOWN),
        (Outcome(KIND.TRANSIENT, findings=(UNKNOWN,)), ProofEnd.UNKNOWN),
        (Outcome(KIND.AMBIGUOUS), ProofEnd.UNKNOWN),
        (Outcome(KIND.CANCELLED, "in-use"), ProofEnd.STOPPED),
        (Outcome(KIND.SUPERSEDED), ProofEnd.STOPPED),
    ],
)
def test_what_a_try_means(outcome, what):
    assert after(outcome) is what


@pytest.mark.parametrize(
    ("findings", "what"),
    [
        ((TOLD, OK), ProofEnd.PROVEN),
        ((TOLD,), ProofEnd.PROVEN),
        ((TOLD, UNKNOWN), ProofEnd.UNKNOWN),
        ((TOLD, SICK), ProofEnd.FOUND),
    ],
)
def test_a_fault_that_no_incident_takes_up_keeps_no_node_from_work(findings, what):
    tried = Outcome(KIND.PERMANENT, "fault-found", findings=findings)
    assert after(without_harmless(tried, (FaultName.THERMAL,))) is what
    assert after(tried) is ProofEnd.FOUND


@pytest.mark.parametrize("terms", ["hold: no", "dry_run: yes"])
def test_harmless_is_what_policy_does_not_hold_for_or_only_rehearses(terms):
    policy = load(f"faults:\n  thermal: {{{terms}}}\n", "p")
    assert FaultName.THERMAL in ProveTerms.of(policy).harmless
    assert FaultName.WRONG_RESULTS not in ProveTerms.of(policy).harmless


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"proven": "yesterday"}', '{"proven": 5}'])
def test_a_memory_that_cannot_be_read_is_none(text):
    assert parse_proof(text) == NEVER


def test_a_memory_is_read_back():
    known = Proof(ago(days=1), NOW, ago(days=2), ago(days=3))
    assert parse_proof(format_proof(known)) == known


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyErrors) as errors:
        load(f"faults: {{}}\nproving:\n{text}", "p.yaml")
    return [f"{each.line} {each.path}: {each.what}" for each in errors.value.mistakes]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  checks: [horoscope]", "3 proving.checks[0]: 'horoscope' is not known here"),
        ("  checks: []", "3 proving.checks: a list is too short"),
        ("  sweep: {every: 7d, look: 8d}", "3 proving.sweep.look: idle nodes are due again"),
        ("  sweep: {look: 5s}", "3 proving.sweep.look: a look more often than every 1m"),
        ("  sweep: {at_once: 0}", "3 proving.sweep.at_once: 0 is too small"),
        ("  sweep: weekly", "3 proving.sweep: 'weekly' is not a mapping"),
        ("  pairs: {every: 1d, look: 2d}", "3 proving.pairs.look: idle nodes are due again"),
        ("  pairs: {add_up: 5s}", "3 proving.pairs.add_up: adding up is given 5s"),
        ("  pairs: {look: 5m}", "3 proving.pairs.look: a trial takes longer than 5m"),
        ("  pairs: {at_once: 2}", "3 proving.pairs.at_once: 2 is too small"),
        ("  pairs: {port: 80}", "3 proving.pairs.port: 80 is too small"),
        ("  trys: 3", "3 proving.trys: there is no key 'trys' here"),
    ],
)
def test_a_mistake_about_proofs_is_named_with_its_line(text, said):
    assert any(each.startswith(said) for each in mistakes(text)), mistakes(text)


def test_what_is_left_out_sweeps_nothing_and_the_shipped_policy_sweeps_weekly():
    assert load("faults: {}", "p").proving == Proving()
    assert (Proving().sweep, Proving().pairs) == (None, None)
    nothing = load("faults: {}\nproving: {sweep: none, pairs: none}", "p").proving
    assert (nothing.sweep, nothing.pairs) == (None, None)
    assert (default_policy().proving.sweep, default_policy().proving.pairs) == (Sweep(), None)
    assert Sweep().model_dump(mode="json") == {"every": "7d", "look": "1h", "at_once": 1}


def test_a_proof_takes_along_what_an_ask_needs_and_stands_behind_every_repair():
    terms = ProveTerms.of(default_policy())
    lease = terms.lease(NOW)
    assert (lease.since, lease.patience) == (NOW, 3_600)
    assert lease.budgets == default_policy().budgets
    assert set(terms.harmless) == {FaultName.APPLICATION, FaultName.MONITOR_SILENT}
    assert ProveTerms.model_validate(terms.model_dump(mode="json")) == terms


@pytest.mark.parametrize("why", Why)
def test_a_person_is_shown_that_a_node_is_unproven_and_where_its_proof_is(why):
    state = a_node(taints=[taint(why)])
    lines = list(_cluster_says(NodeFacts(state), NOW))
    said = next(each for each in lines if "unproven" in each)
    assert IS_UNPROVEN[why] in said
    assert f"prove/c1/n1/{state.identity.machine}" in said


def test_the_policy_says_in_words_how_nodes_are_proven():
    text = render_proving(default_policy())
    assert "not proven for 7d, looked for every 1h, 1 at once" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    assert "idle nodes in service are left alone" in render_proving(load("faults: {}", "p"))
