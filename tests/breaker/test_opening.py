"""When a breaker opens, what it keeps back, and how it lets go."""

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.fault import FaultName
from intake.settings import Settings
from policies.amounts import parse_pace, parse_percent
from policies.breaker import Circuit, Count, Phase, born_bad, set_aside, too_many
from policies.budget_terms import Breaker
from tests.breaker.pool import Pool
from tests.intake.cases import NOW

CLOSE = json.dumps({"actor": "kim", "reason": "the new agent was wrong"})


@pytest.mark.parametrize(
    ("sick", "size", "opens"),
    [(3, 10, False), (4, 10, True), (0, 10, False), (2, 4, False), (4, 4, False), (2, 5, True)],
)
def test_strictly_above_the_share_and_never_in_a_small_scope(sick, size, opens):
    assert too_many(Count(size, sick), Breaker()) is opens


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 1000), st.integers(1, 20))
def test_the_share_is_what_counting_by_hand_says(sick, size, tenths, least):
    limit = parse_percent(f"{tenths // 10}.{tenths % 10}%")
    terms = Breaker(open_above=limit, min_nodes=least)
    by_hand = size >= least and size > 0 and sick / size * 1000 - tenths > 1e-9
    if size:
        assert too_many(Count(size, sick), terms) is by_hand


@pytest.mark.parametrize(
    ("sick", "size", "opens"), [(1, 1, False), (2, 3, True), (2, 20, False), (3, 3, True)]
)
def test_one_sick_newborn_is_chance_and_most_of_them_are_not(sick, size, opens):
    assert born_bad(Count(size, sick), Breaker(), at_least=2) is opens


def test_what_a_person_accepted_is_set_aside():
    accepted = Circuit("pool/x", Phase.REOPENING, NOW, NOW, accepted=4)
    assert set_aside(Count(10, 5), accepted) == Count(10, 1)
    assert set_aside(Count(10, 2), accepted) == Count(10, 0)


async def test_when_the_fourth_of_ten_turns_red_nothing_more_is_held_and_one_storm_is_told():
    pool = Pool(10)
    await pool.go_round()
    for number in range(10):
        pool.become(f"n{number}", "waits")
        pool.admit()
        await pool.go_round()
    await pool.go_round()
    assert [name for name, _ in pool.holds] == ["n0", "n1", "n2"]
    assert pool.phase_now() is Phase.OPEN
    (storm,) = pool.storms
    assert (storm.scope, storm.sick, storm.size) == ("pool/x", 4, 10)
    assert storm.why == "4 of 10 nodes are sick, more than 30% of pool/x; in common: driver 1"
    barred = pool.leaders[0].barred()["pool/x"]
    assert barred == "breaker open: 10 of 10 nodes are sick, more than 30% of pool/x"


async def test_before_the_record_was_read_nothing_is_held():
    pool = Pool(10)
    pool.become("n0", "waits")
    assert pool.why_not("n0") == "breaker-unread"
    assert pool.leaders[0].barred() == {"pool/x": "breaker-unread"}


async def test_a_record_that_cannot_be_read_is_open_until_the_share_says_otherwise():
    pool = Pool(10)
    pool.records.data = {"pool.x": "{"}
    await pool.leaders[0].read()
    pool.become("n0", "waits")
    assert "its record is broken" in pool.why_not("n0")
    await pool.go_round()
    assert pool.phase_now() is Phase.REOPENING
    assert not pool.why_not("n0")


async def fallen(pool):
    """Seven turn red; then all but two of those that wait recover."""
    for number in range(7):
        pool.become(f"n{number}", "waits")
    await pool.go_round()
    for number in range(4, 7):
        pool.become(f"n{number}", "well")
    pool.become("n3", "well")
    await pool.go_round()


async def test_a_storm_that_is_over_before_its_leader_could_tell_of_it_is_told_by_the_next_one():
    pool = Pool(10, leaders=2)
    pool.nobody_listens = True
    await fallen(pool)
    assert pool.phase_now() is Phase.REOPENING
    began = pool.leaders[0].circuits["pool.x"].opened
    for number in range(10):
        pool.become(f"n{number}", "well")
    pool.clock.at += timedelta(minutes=1)
    await pool.go_round(leader=1)
    await pool.go_round(leader=1)
    assert pool.record, "what nobody was told of stays on record"
    pool.nobody_listens = False
    for _ in range(3):
        await pool.go_round(leader=1)
    (storm,) = pool.storms
    assert (storm.over, storm.since, storm.sick) == (True, began, 0)
    assert storm.why.startswith("7 of 10 nodes are sick")
    assert pool.record == {}


async def test_a_falling_share_lets_go_the_held_back_one_by_one_at_the_pace():
    pool = Pool(10)
    await fallen(pool)
    held = []
    for _ in range(10):
        pool.admit()
        held.append(len(pool.holds))
        pool.clock.at += timedelta(seconds=10)
        await pool.go_round()
    assert held[:7] == [1, 1, 1, 2, 2, 2, 3]
    assert pool.phase_now() == "closed"
    assert pool.record == {}


async def test_a_person_closes_it_although_the_share_is_high_and_the_pace_is_kept():
    pool = Pool(10)
    for number in range(6):
        pool.become(f"n{number}", "waits")
    await pool.go_round()
    pool.records.person(close_pool_x=CLOSE)
    for _ in range(20):
        await pool.go_round()
        pool.admit()
        pool.clock.at += timedelta(seconds=10)
    assert [name for name, _ in pool.holds] == [f"n{number}" for number in range(6)]
    circuit = pool.leaders[0].circuits["pool.x"]
    assert (circuit.phase, circuit.accepted) == (Phase.CLOSED, 6)
    assert circuit.by == "kim: the new agent was wrong"
    assert "close.pool.x" not in pool.record


async def test_what_comes_on_top_of_what_a_person_accepted_opens_it_again():
    pool = Pool(10)
    for number in range(5):
        pool.become(f"n{number}", "waits")
    await pool.go_round()
    pool.records.person(close_pool_x=CLOSE)
    await pool.go_round()
    assert pool.phase_now() is Phase.REOPENING
    pool.clock.at += timedelta(seconds=1)
    for number in range(5, 9):
        pool.become(f"n{number}", "waits")
    assert "breaker open" in pool.why_not("n0")
    await pool.go_round()
    assert pool.phase_now() is Phase.OPEN
    assert len(pool.storms) == 2


async def test_an_order_that_cannot_be_read_changes_nothing_and_stays(caplog):
    pool = Pool(10)
    for number in range(5):
        pool.become(f"n{number}", "waits")
    await pool.go_round()
    pool.records.person(close_pool_x='{"actor": "kim"}')
    await pool.go_round()
    await pool.go_round()
    assert pool.phase_now() is Phase.OPEN
    assert "close.pool.x" in pool.record
    assert caplog.text.count("did=not-an-order") == 1


async def test_nodes_born_with_one_fault_open_it_for_that_fault_alone_however_old_they_get():
    pool = Pool(20, settings=Settings(newborn_faults=2))
    for name in ("n0", "n1", "n2"):
        pool.born[name] = NOW - timedelta(minutes=5)
    pool.become("n0", "waits")
    await pool.go_round()
    assert not pool.why_not("n0")
    pool.become("n1", "waits")
    pool.become("n2", "well")
    await pool.go_round()
    assert "2 of 3 nodes just born have gpu-lost" in pool.why_not("n1")
    assert "just born" in pool.leaders[0].barred()["pool/x"]
    pool.faults["n9"] = FaultName.THERMAL
    pool.become("n9", "waits")
    assert not pool.why_not("n9")
    pool.clock.at += timedelta(hours=5)
    await pool.go_round()
    assert pool.why_not("n1")
    pool.become("n0", "well")
    await pool.go_round()
    assert not pool.why_not("n1")


async def test_a_newborn_pool_that_is_sick_as_a_whole_is_one_storm_and_its_births_alone_another():
    pool = Pool(10, settings=Settings(newborn_faults=2))
    for name in ("n0", "n1"):
        pool.born[name] = NOW - timedelta(minutes=5)
        pool.become(name, "waits")
    await pool.go_round()
    assert [each.key for each in pool.storms] == ["born.gpu-lost.pool.x"]
    newborn = Pool(10, settings=Settings(newborn_faults=2))
    newborn.born = dict.fromkeys(newborn.born, NOW)
    for name in newborn.state:
        newborn.become(name, "waits")
    await newborn.go_round()
    await newborn.go_round()
    assert [each.key for each in newborn.storms] == ["pool.x"]
    assert "born.gpu-lost.pool.x" in newborn.record


async def test_many_faults_born_among_many_nodes_are_no_birth_defect():
    pool = Pool(20)
    pool.born = dict.fromkeys(pool.born, NOW)
    for name in pool.state:
        pool.become(name, "well")
    for name in ("n0", "n1", "n2"):
        pool.become(name, "waits")
    await pool.go_round()
    assert not pool.why_not("n2")


PACE = parse_pace("2 per 30s")
WHAT = st.one_of(
    st.tuples(st.just("waits"), st.integers(0, 9)),
    st.tuples(st.just("well"), st.integers(0, 9)),
    st.tuples(st.just("pass"), st.integers(1, 40)),
    st.tuples(st.just("round"), st.integers(0, 1)),
)


async def play(pool, script):
    await pool.go_round(0)
    await pool.go_round(1)
    for what, number in script:
        if what == "pass":
            pool.clock.at += timedelta(seconds=number)
        elif what == "round":
            await pool.go_round(number)
        elif what == "waits" and pool.state[f"n{number}"] == "well":
            pool.become(f"n{number}", "waits")
        elif what == "well":
            pool.become(f"n{number}", "well")
        before, sick = len(pool.holds), pool.sick
        pool.admit()
        assert len(pool.holds) == before or sick <= 3, "a hold in a scope that is too sick"


@given(st.lists(WHAT, max_size=60))
@settings(max_examples=60)
async def test_two_leaders_at_once_hold_nobody_in_an_open_scope_and_keep_the_pace(script):
    pool = Pool(10, leaders=2, terms=Breaker(reopen=PACE))
    turns = []
    for leader in pool.leaders:
        inner = leader._let_go

        def noted(key, names, inner=inner):
            turns.extend([pool.clock.at] * len(names))
            inner(key, names)

        leader._let_go = noted  # type: ignore[method-assign]
    await play(pool, script)
    for at in turns:
        assert sum(at <= each < at + PACE.every for each in turns) <= PACE.count
    for name in [each for each, state in pool.state.items() if state == "held"]:
        pool.become(name, "well")
    for name in [each for each, state in pool.state.items() if state == "waits"][3:]:
        pool.become(name, "well")
    for _ in range(6):
        await pool.go_round(0)
        await pool.go_round(1)
        pool.admit()
        pool.clock.at += PACE.every
    assert "waits" not in pool.state.values(), "somebody is held back for ever"
