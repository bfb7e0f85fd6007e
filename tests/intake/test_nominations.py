"""Marks against open incidents."""

from dataclasses import replace

from fleet.mark import MarkState
from intake.nominations import nominate, workflow_id
from tests.intake.cases import HOLD, NODE, a_mark, a_node

OWNED = a_node(a_mark(MarkState.OWNED), [HOLD])
ID = "node/c/n1/0a1b2c3d"


def test_an_incident_carries_cluster_node_and_machine():
    assert workflow_id(OWNED) == ID


def test_a_mark_without_a_listed_run_is_nominated():
    assert nominate([OWNED], frozenset(), "c").runless == (OWNED,)
    assert nominate([OWNED], frozenset({ID}), "c").runless == ()
    in_probation = a_node(a_mark(MarkState.PROBATION))
    assert nominate([in_probation], frozenset(), "c").runless == (in_probation,)


def test_a_pending_mark_waits_for_its_run_and_is_not_nominated():
    assert nominate([a_node(a_mark(), [HOLD])], frozenset(), "c").runless == ()


def test_an_incident_whose_node_is_gone_or_another_machine_is_nominated():
    assert nominate([], frozenset({ID}), "c").nodeless == (ID,)
    other = a_node(identity=replace(NODE, uid="u2", machine="ffffffff"))
    assert nominate([other], frozenset({ID}), "c").nodeless == (ID,)
    assert nominate([other], frozenset({ID}), "c").unmarked == ()


def test_an_unmarked_node_with_an_open_incident_is_nominated():
    assert nominate([a_node()], frozenset({ID}), "c").unmarked == (a_node(),)


def test_incidents_of_other_clusters_and_other_workflows_are_left_alone():
    theirs = frozenset({"node/c2/n1/0a1b2c3d", "budget/c", "node/cc/n1/0a1b2c3d"})
    found = nominate([], theirs, "c")
    assert found.nodeless == ()
