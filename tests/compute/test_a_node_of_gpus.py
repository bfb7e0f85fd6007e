"""What the production judge says of whole nodes: sound ones, and ones with one thing broken."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.finding import Verdict
from fleet.part import Part
from probes.checks.compute_verdicts import judge
from probes.compute.baselines import HALF, HOST_LINK, Baseline
from probes.compute.products import SEEDS
from tests.compute.broken import MEMORY, Device, address, complaints, exam_of, judged, node

WRONG = ("wrong-results", "compute:products")


@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_sound_node_is_well_in_every_gpu(size):
    findings = judged(node(*(Device() for _ in range(size))))
    assert complaints(findings) == set()
    assert {each.part for each in findings} == {f"gpu:{index}" for index in range(size)}
    assert all("no baseline of numpy" in each.evidence for each in findings)


@given(seed=st.integers(0, SEEDS - 1))
@settings(max_examples=20, deadline=None)
def test_no_seed_makes_a_sound_node_sick(seed):
    assert complaints(judged(node(Device(), Device()), seed=seed)) == set()


@given(sick=st.integers(0, 2), product=st.integers(0, 8), bit=st.sampled_from([13, 22, 30]))
@settings(max_examples=10, deadline=None)
def test_one_flipped_bit_in_one_product_is_found_on_its_gpu_and_on_no_other(sick, product, bit):
    devices = node(*(Device() for _ in range(3)))
    devices[sick].spoilt, devices[sick].bit = product, bit
    found = complaints(judged(devices))
    assert found <= {(f"gpu:{sick}", *WRONG)}
    if bit == 30:  # the top of the exponent is never too small to see, not even in a zero
        assert found


@given(sick=st.integers(0, 1), word=st.integers(0, 20_000), bit=st.integers(0, 63))
@settings(max_examples=10, deadline=None)
def test_a_stuck_bit_of_memory_is_found_on_its_gpu(sick, word, bit):
    devices = node(Device(), Device())
    devices[sick].stuck = (word, bit)
    part = f"gpu:{sick}"
    assert complaints(judged(devices)) == {(part, "uncontained-memory", "compute:memory")}


@pytest.mark.parametrize(
    ("gpus", "witnesses", "expected"),
    [
        (("bad", "ok"), (), {("gpu:0", *WRONG)}),
        (("ok", "bad", "ok"), (), {("gpu:1", *WRONG)}),
        (("bad", "bad", "ok"), (), {("gpu:0", *WRONG), ("gpu:1", *WRONG)}),
        (("bad",), ("ok",), {("gpu:0", *WRONG)}),
        (("bad",), (), {("gpu:0", "unknown", "compute:undecided")}),
        (("bad",), ("bad",), {("gpu:0", "unknown", "compute:undecided")}),
        (
            ("bad", "bad", "bad"),
            (),
            {(f"gpu:{index}", "unknown", "compute:undecided") for index in range(3)},
        ),
        (("ok",), ("bad",), set()),
    ],
)
def test_who_is_always_wrong_is_blamed_only_where_another_shows_what_is_right(
    gpus, witnesses, expected
):
    made = node(*(Device(always=each == "bad", bit=26) for each in (*gpus, *witnesses)))
    findings = judged(made[: len(gpus)], *made[len(gpus) :])
    assert complaints(findings) == expected


def test_one_that_differs_from_an_agreeing_majority_is_odd_though_nobody_met_the_expectation():
    devices = node(*(Device(always=True, bit=26) for _ in range(3)), Device(always=True, bit=27))
    found = complaints(judged(devices))
    assert ("gpu:3", *WRONG) in found
    assert {each for each in found if each[0] != "gpu:3"} == {
        (f"gpu:{index}", "unknown", "compute:undecided") for index in range(3)
    }


def test_two_that_differ_with_nothing_to_judge_by_are_both_unknown():
    devices = node(Device(always=True, bit=26), Device(always=True, bit=27))
    assert {each[1:] for each in complaints(judged(devices))} == {("unknown", "compute:undecided")}


@pytest.mark.parametrize(
    ("device", "code"),
    [
        (Device(bytes_held=MEMORY // 2), "compute:memory-held"),
        (Device(breaks="CUDA error: uncorrectable ECC error encountered"), "compute:error"),
    ],
)
def test_what_could_not_be_tried_is_unknown_and_no_fault(device, code):
    devices = node(device, Device())
    assert complaints(judged(devices)) == {("gpu:0", "unknown", code)}


def test_time_that_was_over_is_unknown():
    clock = itertools.count(0.0, 1.0)
    exam = exam_of(node(Device()), clock=lambda: next(clock), seconds=40.0)
    found = judge(exam, {address(0): Part("gpu:0")}, {})
    assert complaints(found) == {("gpu:0", "unknown", "compute:memory-unfinished")}


@pytest.mark.parametrize(("count", "odd"), [(2, False), (3, True), (8, True)])
def test_a_slow_gpu_is_told_by_its_like_where_there_are_enough_of_them(count, odd):
    devices = node(Device(slower=1.5), *(Device() for _ in range(count - 1)))
    expected = {("gpu:0", "slow", "compute:odd-rate")} if odd else set()
    assert complaints(judged(devices)) == expected


@pytest.mark.parametrize(
    ("what", "least", "expected"),
    [
        (HALF, 1.0, set()),
        (HALF, 1e15, {("gpu:0", "slow", "compute:rate")}),
        (HOST_LINK, 1.0, set()),
        (HOST_LINK, 1e15, {("gpu:0", "pcie-degraded", "compute:host-link")}),
    ],
)
def test_a_recorded_baseline_of_the_type_is_held_against_the_gpu(what, least, expected):
    baselines = {("numpy", what): Baseline(least, "a test")}
    assert complaints(judged(node(Device()), baselines=baselines)) == expected


def test_what_was_measured_is_told_with_what_was_not_judged():
    (finding,) = judged(node(Device()))
    assert finding.verdict is Verdict.OK
    assert "Tflop/s" in finding.evidence
    assert finding.evidence.endswith("no baseline of numpy for half, host")
