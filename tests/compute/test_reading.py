"""However little, and however odd, a child says: read without a raise, and never as healthy."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.finding import Verdict
from fleet.part import Part
from probes.checks.compute_verdicts import judge
from probes.compute.baselines import ALL_REDUCE, load, parse
from probes.compute.child import Plan, plan_of
from probes.compute.examine import examine
from probes.compute.load import Watcher
from probes.compute.numpy_backend import NumpyDevice
from probes.compute.view import read
from tests.compute.broken import SIZES, Device, address, complaints, node

WORDS = ("device", "products", "copies", "memory", "error", "expected", "loaded", "begun", "phase")
NAMES = ("made", "half", "single", "sums", "rate", "inward", "bad", "size", "total", "of", "said")
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(address(0)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from(WORDS + NAMES), values, max_size=6)
PARTS = {address(index): Part(f"gpu:{index}") for index in range(2)}


@pytest.fixture(scope="module")
def output() -> str:
    watcher = Watcher((), {})
    lines = examine(node(Device(), Device()), (), NumpyDevice(), watcher, lambda: 0.0, 60.0, SIZES)
    return "\n".join(json.dumps(each) for each in lines) + "\n"


@given(said=st.lists(documents, max_size=6))
@settings(max_examples=30, deadline=None)
def test_any_documents_are_read_and_judged(said):
    exam = read("\n".join(json.dumps(each) for each in said))
    findings = judge(exam, PARTS, {})
    assert {each.part for each in findings} == set(PARTS.values())
    assert Verdict.OK not in {each.verdict for each in findings}  # too little for that


@given(text=st.text(max_size=200))
@settings(max_examples=30, deadline=None)
def test_any_text_is_read(text):
    assert not read(text).whole or '"end"' in text


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_an_output_that_is_cut_or_lacks_lines_makes_nobody_faulty(output, data):
    cut = output[: data.draw(st.integers(0, len(output)))]
    lines = cut.splitlines()
    kept = [each for each in lines if data.draw(st.booleans())] if lines else []
    for said in (cut, "\n".join(kept)):
        found = complaints(judge(read(said), PARTS, {}))
        assert {verdict for _, verdict, _ in found} <= {"unknown"}


def test_each_line_that_is_missing_leaves_its_question_open(output):
    for word in ("products", "copies", "memory"):
        kept = [each for each in output.splitlines() if word not in json.loads(each)]
        found = complaints(judge(read("\n".join(kept)), PARTS, {}))
        assert {each[0] for each in found} == set(PARTS.values()), word


def test_a_plan_comes_back_as_it_was_sent():
    plan = Plan(("0000:52:00",), 12.5, ("0000:53:00",), ("nvml",), {"A": "b"}, "/a:/b", 7, "numpy")
    assert plan_of(plan.text()) == plan


@pytest.mark.parametrize("text", ["", "[]", "1", '{"gpus": 1}', '{"gpus": []}', '{"more": 1}'])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(ValueError, match=r"not a plan|Expecting"):
        plan_of(text)


def test_every_shipped_baseline_is_read_and_has_a_source(tmp_path):
    known, wrong = load(tmp_path)
    assert not wrong
    assert len(known) > 10
    assert all(each.source and each.least > 1e9 for each in known.values())


def test_what_ships_for_links_is_half_of_what_was_published(tmp_path):
    known, _ = load(tmp_path)
    links = [each for (_, what), each in known.items() if what.startswith(ALL_REDUCE)]
    published = [re.search(r"half of Azure's (\d+)", each.source) for each in links]
    assert [each.least for each in links] == [int(said[1]) * 5e8 for said in published if said]
    assert links


def test_a_hosts_own_baselines_count_instead_and_what_is_wrong_with_them_is_told(tmp_path):
    own = tmp_path / "etc/gpumend/baselines.csv"
    own.parent.mkdir(parents=True)
    own.write_text("model,what,least,unit,source\nNVIDIA H200,half,600,Tflop/s,ours\n")
    known, wrong = load(tmp_path)
    assert known["NVIDIA H200", "half"].least == 600e12
    assert not wrong
    own.write_text("model,what,least,unit,source\nNVIDIA H200,half,fast,Tflop/s,ours\n")
    known, wrong = load(tmp_path)
    assert known["NVIDIA H200", "half"].least == 247e12
    assert "row 2" in wrong


@given(text=st.text(max_size=120) | st.text(alphabet='model,what\n"0e9-Tflop/s', max_size=120))
@settings(max_examples=30, deadline=None)
def test_any_baselines_are_read(text):
    known, _ = parse(text.splitlines())
    assert all(each.least > 0 for each in known.values())
