"""Durations, percentages and counts: their forms, and how they round."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from policies.amounts import Percent, allowed, exceeds, parse_amount, parse_pace, parse_percent
from policies.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("30m", 1800), ("24h", 86_400), ("30d", 2_592_000), ("1h30m", 5400)],
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "10", 10, 1.5, True, None, "1.5h", "30 m", "-5m", "m", "1m1h", "12:30", "367d", "٣m", []],
)
def test_anything_else_is_not_a_duration(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_duration(text)


@given(st.integers(0, int(LONGEST.total_seconds())))
def test_a_duration_survives_being_written(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("percent", "size", "nodes"),
    [
        ("5%", 0, 0),
        ("5%", 1, 1),
        ("5%", 8, 1),
        ("5%", 39, 1),
        ("5%", 40, 2),
        ("5%", 59, 2),
        ("100%", 1, 1),
        ("100%", 7, 7),
        ("99.9%", 7, 6),
        ("0.5%", 199, 1),
        ("0.5%", 400, 2),
        ("33.3%", 3, 1),
    ],
)
def test_a_percentage_rounds_down_with_a_minimum_of_one(
    percent: str, size: int, nodes: int
) -> None:
    assert allowed(parse_percent(percent), size) == nodes


def test_a_count_is_itself_whatever_the_size() -> None:
    assert [allowed(3, size) for size in (0, 1, 100)] == [3, 3, 3]


@given(st.integers(1, 1000), st.integers(1, 100_000))
def test_a_percentage_never_allows_more_than_its_share_unless_that_is_less_than_one(
    tenths: int, size: int
) -> None:
    nodes = allowed(Percent(tenths), size)
    assert 1 <= nodes <= size
    assert nodes == 1 or nodes / size <= tenths / 1000


@pytest.mark.parametrize("text", ["0%", "101%", "5", "5 %", "-5%", "5.55%", 5, None, "%"])
def test_anything_else_is_not_a_percentage(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_percent(text)


@pytest.mark.parametrize("text", [True, -1, 1.5, None, [], 100_001])
def test_an_amount_is_a_count_or_a_percentage(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_amount(text)


def test_a_share_must_be_strictly_above_the_limit_to_exceed_it() -> None:
    limit = parse_percent("30%")
    assert not exceeds(3, 10, limit)
    assert exceeds(4, 10, limit)
    assert not exceeds(0, 0, limit)


@pytest.mark.parametrize("text", ["0 per 30s", "1 per 0s", "1 per 30", "1/30s", 1])
def test_a_pace_goes_on_for_ever_so_it_needs_a_count_and_a_time(text: object) -> None:
    with pytest.raises(PydanticCustomError):
        parse_pace(text)


def test_a_pace_survives_being_written() -> None:
    assert str(parse_pace("2 per 90s")) == "2 per 1m30s"
    assert parse_pace("2 per 1m30s") == parse_pace("2 per 90s")
