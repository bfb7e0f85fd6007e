"""What a storm's nodes have in common, and the names under which circuits are kept."""

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intake.breaker_record import circuit_key, format_circuit, parse_circuit, parse_order
from policies.breaker import Circuit, Phase
from policies.storm import common_cause

OLD, NEW = {"driver": "1", "type": "p5"}, {"driver": "2", "type": "p5"}


@pytest.mark.parametrize(
    ("sick", "well", "cause"),
    [
        ([NEW] * 4, [OLD] * 6, "driver 2 (4 of 4 sick, 0 of 6 well); type p5 (4 of 4 sick, 6 of"),
        ([NEW] * 3 + [OLD], [OLD], "driver 2 (3 of 4 sick, 0 of 1 well)"),
        ([{"fault": "gpu-lost"}] * 2, [{}], "fault gpu-lost (2 of 2 sick)"),
        ([{"driver": "1"}, {"driver": "2"}], [], ""),
        ([{"rack": ""}], [], ""),
        ([], [], ""),
    ],
)
def test_what_most_of_the_sick_share_and_few_of_the_well_comes_first(sick, well, cause):
    found = common_cause(sick, well)
    assert found.startswith(cause)
    assert bool(found) is bool(cause)


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("pool/training", "pool.training"),
        ("nvlink-domain/a.b-1", "nvlink-domain.a.b-1"),
        ("label:example.org/row/r_7", "label_3aexample_2eorg.row_2fr_5f7"),
    ],
)
def test_a_scope_is_a_key_that_a_config_map_takes(scope, key):
    assert circuit_key(scope) == key


@given(*[st.tuples(st.sampled_from(["pool", "label:a.b"]), st.text(max_size=9))] * 2)
def test_no_two_scopes_share_a_key(one, other):
    same = circuit_key("/".join(one)) == circuit_key("/".join(other))
    assert same is (one == other)


TIMES = st.datetimes(timezones=st.just(UTC))


@given(
    st.builds(
        Circuit,
        st.text(min_size=1, max_size=20),
        st.sampled_from(Phase),
        TIMES,
        TIMES,
        st.integers(0, 99),
        st.text(max_size=30),
        st.booleans(),
        st.text(max_size=30),
    )
)
def test_a_circuit_survives_its_record(circuit):
    assert parse_circuit(format_circuit(circuit)) == circuit


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"actor": "", "reason": "x"}', '{"actor": 1}'])
def test_an_order_without_actor_or_reason_is_none(text):
    with pytest.raises(ValueError, match="actor"):
        parse_order(text)
