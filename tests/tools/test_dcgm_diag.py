"""DCGM's diagnosis over its versions: passed, failed, skipped, cut off, refused, never begun."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.check import ACTIVE, Check
from fleet.fault import Advice
from fleet.part import Part
from probes import checks
from probes.checks import dcgm_diag, dcgm_engine
from probes.child import Ended
from probes.dcgm import diag
from probes.dcgm.diag import Outcome, Status
from tests.tools.fake_dcgmi import table, version_3, version_4
from tests.tools.machine import MISSING, said, well

PASSED = {"memory": {"0": "Pass", "1": "Pass"}, "pcie": {"0": "Pass", "1": "Skip"}}
IDLE = """\
{"driver": "580.65.06", "count": 2}
{"gpu": 0, "pci": "00000000:52:00.0", "values": {"processes": {"list": []}}}
{"gpu": 1, "pci": "00000000:53:00.0", "values": {"processes": {"list": []}}}
{"end": true}"""
FORMS = {3: version_3, 4: version_4, "table": table}


def failing(test: str, severity: int = 0, category: int = 0) -> dict[str, Any]:
    return {**PASSED, test: {"0": "Pass", "1": ["Fail", severity, category, "it is said why"]}}


def test_no_round_of_the_agent_runs_it():
    assert Check.DCGM_DIAG in ACTIVE
    assert Check.DCGM_DIAG not in checks.PASSIVE


@pytest.mark.parametrize("version", FORMS)
def test_what_passes_is_well_on_every_gpu(tools, version):
    tools.say(results=PASSED, version=version, process=True)
    findings = tools.look("dcgm-diag")
    assert (said(findings), well(findings)) == (set(), {"gpu:0", "gpu:1"})


@pytest.mark.parametrize("version", FORMS)
def test_what_fails_accuses_the_gpu_at_its_address(tools, version):
    gpus = {"0": "00000000:53:00.0", "1": "00000000:52:00.0"}
    tools.say(results=failing("memory"), version=version, gpus=gpus, exit={"diag": 226})
    findings = tools.look("dcgm-diag")
    assert said(findings) == {("gpu:0", "uncontained-memory", "dcgm-diag:memory")}
    assert well(findings) == {"gpu:1"}


@pytest.mark.parametrize(
    ("test", "severity", "category", "fault", "advice"),
    [
        ("memory", 2, 10, "uncontained-memory", Advice.DRAIN),
        ("diagnostic", 6, 11, "nvlink-error", Advice.RESET_GPU),
        ("diagnostic", 4, 13, "pcie-degraded", Advice.HOLD),
        ("targeted_stress", 1, 1, "slow", Advice.HOLD),
        ("diagnostic", 4, 9, "thermal", Advice.HOLD),
        ("diagnostic", 4, 15, "unknown-code", Advice.HOLD),
        ("diagnostic", 99, 99, "unknown-code", Advice.HOLD),
        ("software", 5, 8, "unknown", Advice.NONE),
        ("software", 4, 10, "uncontained-memory", Advice.HOLD),
    ],
)
def test_dcgms_own_numbers_say_what_failed(tools, test, severity, category, fault, advice):
    tools.say(results=failing(test, severity, category))
    bad = [each for each in tools.look("dcgm-diag") if each.part == "gpu:1"]
    assert [(each.fault or each.verdict.value, each.advice) for each in bad] == [(fault, advice)]
    assert "it is said why" in bad[0].evidence


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("PCIe", "pcie-degraded"),
        ("GPU Memory", "uncontained-memory"),
        ("Persistence Mode", "unknown"),
        ("Page Retirement/Row Remap", "contained-memory"),
        ("Tea Leaves", "unknown-code"),
    ],
)
@pytest.mark.parametrize("version", [3, "table"])
def test_without_numbers_the_tests_name_does(tools, version, test, fault):
    tools.say(results=failing(test), version=version)
    assert [(part, name) for part, name, _ in said(tools.look("dcgm-diag"))] == [("gpu:1", fault)]


@pytest.mark.parametrize("status", ["Warn", "Not Run", "Splendid", ""])
def test_only_pass_is_passed(tools, status):
    tools.say(results={"memory": {"0": "Pass", "1": status}})
    findings = tools.look("dcgm-diag")
    assert [verdict for _, verdict, _ in said(findings)] == ["unknown"]
    assert "gpu:1" not in well(findings)


def test_a_gpu_of_which_everything_was_skipped_or_nothing_said_is_not_well(tools):
    tools.say(results={"memory": {"0": "Skip"}, "pcie": {"0": "Skip"}})
    unknown = ("unknown", "dcgm-diag:not-run")
    assert said(tools.look("dcgm-diag")) == {("gpu:0", *unknown), ("gpu:1", *unknown)}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"engine": False}, "no-engine"),
        ({"runtime_error": "Diagnostic could not be run"}, "no-result"),
        ({"raw": {"diag": ""}}, "no-result"),
        ({"raw": {"diag": '{"DCGM Diagnostic": {"test_categories": '}}, "no-result"),
        ({"results": PASSED, "exit": {"diag": 205}}, "exit"),
        ({"results": PASSED, "afterwards": {"engine": False}}, "engine-gone"),
    ],
)
def test_what_was_not_told_to_its_end_proves_nothing(tools, state, code):
    tools.say(**state)
    findings = tools.look("dcgm-diag")
    assert said(findings) == {("host", "unknown", f"dcgm-diag:{code}")}
    assert well(findings) == set()


def test_where_no_engine_answers_none_is_started(tools):
    tools.say(engine=False)
    tools.look("dcgm-diag")
    assert tools.calls == ["discovery --list"]
    assert not (tools.root / "embedded").exists()


def test_without_dcgm_it_is_unknown(tools):
    tools.remove("dcgmi")
    assert said(tools.look("dcgm-diag")) == {("host", "unknown", "dcgm-diag:no-dcgm")}


@pytest.mark.parametrize(("level", "run"), [("", "1"), ("2", "2"), ("3", "3")])
def test_the_level_is_configured(tools, monkeypatch, level, run):
    if level:
        monkeypatch.setenv(dcgm_diag.LEVEL, level)
    tools.nvml(IDLE)
    tools.look("dcgm-diag")
    assert f"diag --run {run} --json -i 0,1" in tools.calls


@pytest.mark.parametrize("level", ["2", "3"])
@pytest.mark.parametrize(
    ("nvml", "code"),
    [
        (IDLE.replace("[]", "[4711]", 1), "dcgm-diag:in-use"),
        (IDLE.replace('{"list": []}', "[999]", 1), "dcgm-diag:use-unknown"),
        (IDLE.replace("53:00", "54:00", 1), "dcgm-diag:use-unknown"),
        (MISSING, "dcgm-diag:use-unknown"),
    ],
)
def test_no_gpu_is_put_to_the_test_that_somebody_uses_or_may_use(
    tools, monkeypatch, level, nvml, code
):
    monkeypatch.setenv(dcgm_diag.LEVEL, level)
    tools.nvml(nvml)
    findings = tools.look("dcgm-diag")
    assert {each[1:] for each in said(findings)} == {("unknown", code)}
    assert not any(each.startswith("diag") for each in tools.calls)
    assert well(findings) == set()


def test_only_gpus_that_are_asked_about_are_used(tools):
    tools.subject.scope = (Part("gpu:1"),)
    tools.say(results={"memory": {"1": "Pass"}})
    assert well(tools.look("dcgm-diag")) == {"gpu:1"}
    assert "diag --run 1 --json -i 1" in tools.calls
    tools.subject.scope = (Part("gpu:7"),)
    assert said(tools.look("dcgm-diag")) == {("host", "unknown", "dcgm-diag:no-gpu")}


@pytest.mark.parametrize("level", ["4", "0", "all"])
def test_a_level_that_is_none_runs_nothing(tools, monkeypatch, level):
    monkeypatch.setenv(dcgm_diag.LEVEL, level)
    assert said(tools.look("dcgm-diag")) == {("host", "unknown", "dcgm-diag:configuration")}
    assert tools.calls == []


def test_nothing_is_begun_that_could_not_be_ended_in_time(tools):
    tools.subject.until = time.monotonic() + dcgm_diag.GRACE + 1
    assert said(tools.look("dcgm-diag")) == {("host", "unknown", "dcgm-diag:no-time")}
    assert not any(each.startswith("diag") for each in tools.calls)


def test_one_that_ran_out_of_time_is_ended_in_order_and_its_traces_are_said(tools, monkeypatch):
    monkeypatch.setattr(dcgm_diag, "LEAST", 0.0)
    monkeypatch.setattr(dcgm_diag, "LIMITS", {1: 0.5})
    tools.say(behave={"diag": "tidy"})
    (finding,) = tools.look("dcgm-diag")
    assert (finding.verdict.value, finding.code) == ("unknown", "dcgm-diag:cut-off")
    assert "clocks and modes may be left changed" in finding.evidence


def test_one_that_does_not_end_at_all_is_a_hang(tools, monkeypatch):
    monkeypatch.setattr(dcgm_engine, "diagnose", lambda *_: Ended(None, hung=True))
    assert said(tools.look("dcgm-diag")) == {("host", "driver-hung", "child:hung")}


STATUSES = st.sampled_from(["Pass", "Fail", "Warn", "Skip", "Not Run"])
RESULTS = st.dictionaries(
    st.sampled_from(["memory", "pcie", "diagnostic", "targeted_power"]),
    st.dictionaries(st.sampled_from(["0", "1", "2"]), STATUSES, min_size=1),
    min_size=1,
)


@pytest.mark.parametrize("form", FORMS.values())
@settings(max_examples=25, deadline=None)
@given(results=RESULTS)
def test_every_form_reads_as_what_was_told(form, results):
    read = diag.read(form(results)).outcomes
    for test, by_gpu in results.items():
        for gpu, status in by_gpu.items():
            told = {each.status for each in read if each.test == test and each.gpu in ("", gpu)}
            assert diag.status_of(status) in told
            if diag.status_of(status) is Status.PASS:
                assert told <= {Status.PASS, *(diag.status_of(each) for each in by_gpu.values())}


def test_a_real_document_of_level_one_reads_as_it_was_printed():
    warning: dict[str, Any] = {
        "error_category": 8,
        "error_id": 29,
        "error_severity": 5,
        "warning": "Persistence Mode: Persistence mode for GPU 0 is disabled.",
    }
    result = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Fail"}
    test = {
        "name": "software",
        "results": [{**result, "warnings": [warning]}],
        "test_summary": {"info": ["SRAM Threshold checking was skipped."], "status": "Fail"},
    }
    said = diag.read(document([test]))
    assert said.outcomes == (
        Outcome("software", "0", Status.FAIL, warning["warning"], severity=5, category=8),
    )


def document(tests: list[Any]) -> str:
    root = {"test_categories": [{"category": "Deployment", "tests": tests}]}
    metadata = {"Driver Version Detected": "580.82.09", "version": "4.2.3"}
    return json.dumps({"DCGM Diagnostic": root, "metadata": metadata})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("Pass"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["tests", "results", "status", "gpu_ids", "warnings", "name", "entity_id",
                         "test_categories", "test_summary", "DCGM Diagnostic", "metadata"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(JSON, st.text(max_size=10))
def test_no_document_raises_or_passes_where_it_does_not_say_so(said, banner):
    text = banner.replace("{", "") + json.dumps(said)
    passed = [each for each in diag.read(text).outcomes if each.status is Status.PASS]
    assert not passed or "Pass" in text
