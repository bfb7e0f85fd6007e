"""What a node counts as, and that counting as nodes change is counting them all."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.census import ScopeCensus
from fleet.mark import MarkState
from fleet.node import Condition
from intake.tally import Stance, Tally, is_down, is_held, stance_of
from tests.intake.cases import FOREIGN, HOLD, NOW, a_mark, a_node

OUR_CORDON = a_mark(MarkState.OWNED, undo=("cordon",))


def ready(status="True"):
    return (Condition("Ready", status, "", ""),)


@pytest.mark.parametrize(
    ("changes", "held", "down"),
    [
        ({}, False, False),
        ({"taints": (HOLD,), "mark": a_mark()}, True, False),
        ({"taints": (HOLD,)}, True, False),
        ({"taints": (FOREIGN,)}, False, False),
        ({"mark": a_mark(MarkState.PROBATION)}, False, False),
        ({"conditions": ready("False")}, False, True),
        ({"conditions": ready("Unknown")}, False, True),
        ({"conditions": ()}, False, True),
        ({"taints": (HOLD,), "mark": a_mark(), "conditions": ready("Unknown")}, True, True),
        ({"deleting": True}, False, True),
        ({"unschedulable": True}, False, True),
        ({"unschedulable": True, "mark": a_mark(MarkState.OWNED)}, False, True),
        ({"unschedulable": True, "mark": OUR_CORDON}, True, False),
        ({"unschedulable": True, "mark": replace(OUR_CORDON, uid="u0")}, False, True),
        ({"unschedulable": True, "taints": (HOLD,), "mark": a_mark()}, True, True),
        ({"labels": {"gpumend.io/managed": "false"}}, False, False),
        ({"pause": "being rewired"}, False, False),
    ],
)
def test_a_hold_is_no_disruption_and_whoever_serves_nobody_is_down(changes, held, down):
    node = a_node(**{"conditions": ready(), **changes})
    assert (is_held(node), is_down(node)) == (held, down)


def test_a_node_counts_in_every_scope_that_it_has_a_key_of():
    stance = stance_of(a_node(), {"cluster": "c", "rack": "r7"})
    assert stance == Stance(("cluster/c", "rack/r7"), held=False, down=True)


SCOPES = st.lists(st.sampled_from(["cluster/c", "rack/a", "rack/b", "pool/x"]), unique=True)
STANCES = st.builds(Stance, SCOPES.map(tuple), st.booleans(), st.booleans())
CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), STANCES | st.none()))


@given(CHANGES)
def test_what_is_kept_up_change_by_change_is_what_is_counted_afresh(changes):
    tally = Tally()
    fleet: dict[str, Stance | None] = {}
    for name, stance in changes:
        before, changed = fleet.get(name), tally.changes
        fleet[name] = stance
        tally.put(name, stance) if stance else tally.drop(name)
        assert (tally.changes > changed) is (before != stance)
    nodes = {name: stance for name, stance in fleet.items() if stance}
    sizes = Counter(scope for stance in nodes.values() for scope in stance.scopes)
    assert tally.census(NOW, {}).scopes == {
        scope: ScopeCensus(
            size,
            sum(each.held for each in nodes.values() if scope in each.scopes),
            tuple(sorted(n for n, each in nodes.items() if each.down and scope in each.scopes)),
        )
        for scope, size in sizes.items()
    }
