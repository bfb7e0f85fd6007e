import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import Part
from fleet.step import (
    RESULT_LIMIT,
    NodeStepReport,
    NodeStepResult,
    Step,
    format_report,
    parse_report,
)

findings = st.builds(
    lambda part, sick, evidence, pods: Finding(
        check="memory",
        part=Part(part),
        verdict=Verdict.FAULT if sick else Verdict.UNKNOWN,
        fault=FaultName.UNCONTAINED_MEMORY if sick else None,
        code="ecc",
        advice=Advice.RESET_GPU if sick else Advice.NONE,
        severity=Severity.FATAL,
        evidence=evidence,
        pods=pods,
    ),
    st.sampled_from(["gpu:0", "gpu:7", "host"]),
    st.booleans(),
    st.text(max_size=40),
    st.lists(st.uuids().map(str), max_size=2, unique=True).map(tuple),
)


def a_report(found):
    return NodeStepReport("op-1", Step.VERIFY, NodeStepResult.DONE, "b1", "", tuple(found))


@given(st.lists(findings, max_size=5))
def test_what_a_pod_answers_is_read_back(found):
    assert parse_report(format_report(a_report(found))) == a_report(found)


@given(st.lists(findings, min_size=1, max_size=4), st.integers(min_value=60, max_value=90))
def test_a_long_answer_fits_the_termination_message_worst_first(some, length):
    found = (some * length)[:length]
    text = format_report(a_report(found))
    read = parse_report(text)

    assert len(text.encode()) <= RESULT_LIMIT
    assert len(read.findings) + read.more == length
    assert [each.part for each in read.findings] == [
        each.part for each in found[: len(read.findings)]
    ]


@pytest.mark.parametrize(
    "text", ["", "OOMKilled", "{", '{"operation":"a"}', "[]", '{"step":"fly"}']
)
def test_an_answer_that_is_cut_or_foreign_is_refused(text):
    with pytest.raises(ValueError, match="not the report of a node step"):
        parse_report(text)
