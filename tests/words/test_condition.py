from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.condition import MESSAGE_LIMIT, ConditionMessage, format_message, parse_message
from fleet.fault import Advice, Fault, FaultName
from fleet.part import Part
from fleet.pod import PODS_LIMIT, hit

SINCE = datetime(2026, 11, 29, 12, 3, 11, tzinfo=UTC)

parts = st.sampled_from(["gpu:3", "gpu:3/mig:1", "nvlink:3/7", "nic:rdmap16s27", "pci:0000:52:00"])
hashes = st.from_regex(r"[0-9a-f]{32}", fullmatch=True)
faults = st.builds(
    Fault,
    part=parts.map(Part),
    name=st.sampled_from(FaultName),
    code=st.from_regex(r"[a-z0-9]{1,12}:[A-Za-z0-9_.\-]{1,24}", fullmatch=True),
    advice=st.sampled_from(Advice),
    count=st.integers(min_value=1, max_value=10**9),
    since=st.datetimes(
        min_value=datetime(2020, 1, 1),  # noqa: DTZ001 (made aware by the strategy)
        max_value=datetime(2100, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
    id=st.from_regex(r"([0-9a-f]{8})?", fullmatch=True),
    pods=st.lists(st.uuids().map(str) | hashes, max_size=PODS_LIMIT, unique=True).map(tuple),
)


def a_fault(part: str = "gpu:3") -> Fault:
    return Fault(
        part=Part(part),
        name=FaultName.UNCONTAINED_MEMORY,
        code="xid:95",
        advice=Advice.RESET_GPU,
        count=12,
        since=SINCE,
        id="7f3a9c01",
    )


def test_a_message_reads_as_in_the_design():
    assert format_message("b1", [a_fault()]) == (
        "boot=b1\n"
        "part=gpu:3 fault=uncontained-memory code=xid:95 advice=reset-gpu count=12 "
        "since=2026-11-29T12:03:11Z id=7f3a9c01"
    )


POD = "4c1f7a52-9a0e-4a6c-8f0b-0d6f2f1f2a11"


def test_whose_work_was_hit_stands_at_the_end_of_a_line_and_old_lines_have_none():
    line = format_message("b1", [replace(a_fault(), pods=(POD,))])
    assert line.endswith(f"id=7f3a9c01 pods={POD}")
    assert parse_message(line.rpartition(" ")[0]).faults == (a_fault(),)


@pytest.mark.parametrize("text", ["", "web-0", f"{POD}0", POD.upper(), "../../etc", ",,"])
def test_what_is_no_uid_names_no_pod(text):
    line = f"{format_message('b1', [a_fault()])} pods={text},{POD}"
    assert parse_message(line).faults[0].pods == (POD,)


def test_of_many_pods_the_last_that_were_hit_stay_in_order_each_once():
    assert hit((), ["a", "b", "a"]) == ("a", "b")
    assert hit(("a", "b", "c", "d"), ["b", "e"]) == ("b", "c", "d", "e")


def test_a_healthy_condition_still_names_its_boot():
    assert parse_message(format_message("b1", [])) == ConditionMessage("b1")


@given(st.lists(faults, max_size=8))
def test_what_is_written_is_read_back(written):
    assert parse_message(format_message("b1", written)) == ConditionMessage("b1", tuple(written))


def test_a_long_message_is_cut_by_whole_lines_and_says_how_many_it_lost():
    written = [a_fault(f"gpu:{index}") for index in range(200)]

    text = format_message("b1", written)
    read = parse_message(text)

    assert len(text) <= MESSAGE_LIMIT
    assert read.faults == tuple(written[: len(read.faults)])
    assert read.more == 200 - len(read.faults)


def test_a_fault_of_a_newer_agent_is_an_unknown_code():
    line = format_message("b1", [a_fault()]).replace("uncontained-memory", "melted")

    assert parse_message(line).faults[0].name is FaultName.UNKNOWN_CODE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DCGMHealthCode101",
        "boot=",
        "boot=b1\nnonsense",
        "boot=b1\npart=gpu:x fault=gpu-lost code=a advice=none count=1 since=2026-11-29T12:03:11Z",
        "boot=b1\npart=gpu:1 fault=gpu-lost code=a advice=none count=1 since=yesterday",
    ],
)
def test_a_message_that_is_not_ours_is_refused_in_words(text):
    with pytest.raises(ValueError, match=r"condition message|not a fault line"):
        parse_message(text)
