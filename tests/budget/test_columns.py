"""Batches and their answers on their way: what arrives is what was sent, and it is small."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_core import to_json

from console.bench.budget_asker import ask_of
from policies.columns import Columns, Reach, by_columns, by_rows
from policies.exchange import Answer, Batch, SentAnswer, SentBatch, answer, read_answer, send
from policies.ledger import Ask, Claim

NOW = datetime(2026, 11, 29, tzinfo=UTC)
COLUMNS = {"incident": ["a"], "node": ["n"], "since": [NOW], "patience": [0], "place": [0]}
names = st.sampled_from(["a", "b", "rack/r1", "pool/p"])
claims = st.lists(st.builds(Claim, names, st.integers(0, 9), st.booleans()), max_size=3)
some_asks = st.lists(
    st.builds(
        Ask,
        names,
        names,
        claims.map(tuple),
        st.integers(0, 9).map(lambda each: NOW + timedelta(seconds=each)),
        st.integers(0, 9),
        st.lists(names, max_size=2).map(tuple),
    ),
    max_size=6,
)


@given(some_asks, st.lists(names, max_size=2), some_asks)
def test_a_batch_arrives_as_it_was_sent(asks, gives, hand_offs):
    batch = Batch(tuple(asks), tuple(gives), tuple(hand_offs))
    sent = TypeAdapter(SentBatch).validate_json(to_json(send(batch)))
    arrived = Batch(tuple(by_rows(sent.asks)), sent.gives, tuple(by_rows(sent.hand_offs)))
    assert arrived == batch


def test_an_answer_says_of_each_ask_whether_it_is_granted_and_else_what_stops_it():
    asks = tuple(Ask(name, name, (), NOW) for name in "abcd")
    sent = answer(asks, {"b"}, ["rack full", "unused", "frozen", "rack full"])
    assert sent == SentAnswer(("b",), (0, -1, 1, 0), ("rack full", "frozen"))
    why = {"a": "rack full", "c": "frozen", "d": "rack full"}
    assert read_answer(Batch(asks), sent) == Answer(("b",), why)


def test_an_answer_to_another_batch_is_no_grant():
    with pytest.raises(ValueError, match="zip"):
        read_answer(Batch((Ask("a", "n", (), NOW),)), SentAnswer((), (), ()))


def test_a_thousand_asks_of_a_large_fleet_stay_far_below_what_a_payload_takes():
    batch = Batch(tuple(ask_of(number, "c1") for number in range(1_000)))
    assert len(to_json(send(batch))) < 200_000
    assert len(by_columns(batch.asks).reaches) == 63


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"node": []}, "differ in length"),
        ({"place": [1]}, "none of its reaches"),
        ({"place": [-1]}, "none of its reaches"),
    ],
)
def test_columns_that_do_not_fit_are_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        Columns(**{**COLUMNS, **wrong}, reaches=[Reach(())])
