"""A link is accused for a window full of flaps, and is well after one that was free of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.flaps import LIMITS, LINKS_LIMIT, TIMES_KEPT, Flaps, read_flaps, too_many
from probes.records import BROKEN

HOUR, DAY = 3_600.0, 86_400.0
LINK = "mlx5_0 port 1"


def accused(*downs: float, at: float) -> bool:
    return bool(too_many(downs, at))


def every(period: float, count: int) -> list[float]:
    return [period * each for each in range(count)]


@pytest.mark.parametrize(
    ("downs", "at", "expected"),
    [
        ([], 0.0, False),
        ([0.0, 60.0], 60.0, False),
        ([0.0, 60.0, 120.0], 120.0, True),
        ([0.0, 60.0, HOUR - 1], HOUR - 1, True),
        ([0.0, 60.0, HOUR], HOUR, False),
        ([0.0, 60.0, 120.0], 120.0 + HOUR - 1, True),
        ([0.0, 60.0, 120.0], 120.0 + HOUR, False),
        ([0.0, 60.0, 120.0, HOUR], HOUR + 3_000.0, True),
        ([0.0, 60.0, 120.0, 3 * HOUR], 3 * HOUR, False),
        (every(HOUR, 5), 5 * HOUR, False),
        (every(HOUR, 6), 5 * HOUR, True),
        (every(4 * HOUR, 6), 20 * HOUR, True),
        (every(5 * HOUR, 6), 25 * HOUR, False),
        (every(HOUR, 6), 5 * HOUR + DAY - 1, True),
        (every(HOUR, 6), 5 * HOUR + DAY, False),
        (every(2 * DAY, 16), 30 * DAY, False),
    ],
)
def test_a_window_accuses_when_it_is_full_until_one_was_free(downs, at, expected):
    assert accused(*downs, at=at) is expected


def test_it_says_how_often_and_within_what():
    assert too_many([0.0, 60.0, 120.0], 120.0) == "went down 3 times, 3 within 1 h"
    assert too_many(every(HOUR, 6), 5 * HOUR) == "went down 6 times, 6 within 24 h"


def read(flaps, *counts, start=0.0, period=60.0):
    """The verdict after each of several looks."""
    return [bool(flaps.read(LINK, each, start + period * n)) for n, each in enumerate(counts)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([7, 7, 7], [False] * 3),
        ([0, 1, 1, 2, 2, 3], [False] * 5 + [True]),
        ([4_000, 4_001, 4_001, 4_002], [False] * 4),
        ([0, 3], [False, True]),
        ([5, 6, 7, 0, 1, 2], [False] * 6),
        ([5, 6, 7, 0, 1, 2, 3], [False] * 6 + [True]),
        ([0, 3, 0], [False, True, False]),
    ],
    ids=["quiet", "slow", "two", "at once", "ran backwards", "and flaps on", "forgets"],
)
def test_flaps_are_what_the_counter_rises_by_and_backwards_is_a_new_start(counts, expected):
    assert read(Flaps(), *counts) == expected


def test_a_link_that_recovered_and_flaps_again_is_accused_anew():
    flaps = Flaps()
    assert read(flaps, 0, 1, 2, 3)[-1]
    assert read(flaps, 3, 3, start=3_700.0, period=200.0) == [True, False]
    assert read(flaps, 4, 5, start=4_000.0) == [False, False]
    assert read(flaps, 6, start=4_200.0) == [True]


def test_flaps_that_nobody_saw_come_are_spread_over_the_time_since():
    assert read(Flaps(), 0, 4, period=10 * HOUR) == [False, False]
    assert read(Flaps(), 0, 6, period=10 * HOUR) == [False, True]
    assert read(Flaps(), 0, 10**9, period=60.0) == [False, True]


def test_what_a_link_does_while_it_settles_is_no_flap():
    flaps = Flaps()
    for at, count in enumerate((0, 5, 9)):
        assert flaps.read(LINK, count, 60.0 * at, settling=True) == ""
    assert read(flaps, 9, 10, 11, start=300.0) == [False] * 3


def test_a_clock_that_stands_still_or_goes_back_changes_nothing():
    flaps = Flaps()
    assert read(flaps, 0, 3) == [False, True]
    assert flaps.read(LINK, 9, 60.0)
    assert flaps.read(LINK, 9, 0.0)
    assert len(flaps.links[LINK].downs) == 3


def test_flaps_outlive_a_restart():
    flaps = Flaps()
    read(flaps, 0, 1, 2)
    again = read_flaps(json.loads(json.dumps(flaps.fields())))
    assert again == flaps
    assert read(again, 3, start=200.0) == [True]


@pytest.mark.parametrize("broken", [["x"], {"a": 1}, {"a": []}, {"a": [1]}, {"a": [0, 0, "x"]}])
def test_what_is_no_state_is_refused(broken):
    with pytest.raises(BROKEN):
        read_flaps(broken)


@given(st.lists(st.tuples(st.integers(0, 2_000), st.floats(0, 1e6)), max_size=40))
def test_whatever_is_read_the_memory_is_bounded_and_nothing_raises(looks):
    flaps = Flaps()
    for count, at in looks:
        flaps.read(LINK, count, at)
    assert all(len(each.downs) <= TIMES_KEPT for each in flaps.links.values())


def test_links_are_remembered_up_to_a_limit():
    flaps = Flaps()
    for number in range(LINKS_LIMIT + 5):
        flaps.read(f"{number}", 0, 0.0)
    assert len(flaps.links) == LINKS_LIMIT
    assert flaps.read("one more", 9, 1.0) == ""


@given(st.lists(st.floats(0, 10 * DAY), max_size=TIMES_KEPT).map(sorted), st.floats(0, 2 * DAY))
def test_no_link_is_accused_with_fewer_flaps_than_the_least_limit_or_after_a_quiet_day(downs, more):
    at = (downs[-1] if downs else 0.0) + more
    if too_many(downs, at):
        assert len(downs) >= min(many for many, _ in LIMITS)
        assert more < DAY
