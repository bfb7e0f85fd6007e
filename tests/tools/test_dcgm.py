"""DCGM's watches: sound, failing, warning, gone, mute, saying what nobody knows, and back."""

import argparse
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console import probe
from fleet.fault import FaultName
from fleet.part import HOST, Part
from probes.agent.untold import Untold
from probes.checks import dcgm_engine as engine
from probes.dcgm import discovery, health
from probes.dcgm.health import Health, Trouble, Word
from probes.fault_set import FaultSet
from probes.log_faults import apply_records
from probes.records import Kind, Record
from tests.tools.fake_dcgmi import tree
from tests.tools.machine import MISSING, said, well

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LONG = "Detected 3 volatile double-bit ECC error(s) in GPU 1. Drain the GPU and reset it or reboot."
FAILING = ["GPU", "1", "Memory system", "Failure", LONG]
WARNING = ["GPU", "1", "Power system", "Warning", "cannot read the power of GPU 1"]
GONE = ("host", "monitor-silent", "dcgm:gone")
BOTH = {"host", "gpu:0", "gpu:1"}


def wanted(tools) -> None:
    unit = tools.root / "etc/systemd/system/multi-user.target.wants/nvidia-dcgm.service"
    unit.parent.mkdir(parents=True)
    unit.symlink_to("/usr/lib/systemd/system/nvidia-dcgm.service")


def test_an_engine_without_complaints_leaves_every_gpu_well(tools):
    tools.say(process=True)
    findings = tools.look("dcgm")
    assert (said(findings), well(findings)) == (set(), BOTH)
    assert tools.calls == ["health --check --json"]


@pytest.mark.parametrize("old", [False, True])
def test_a_failure_accuses_the_gpu_at_its_address_and_no_other(tools, old):
    tools.say(gpus={"0": "00000000:53:00.0", "1": "00000000:52:00.0"}, troubles=[FAILING], old=old)
    findings = tools.look("dcgm")
    assert said(findings) == {("gpu:0", "contained-memory", "dcgm:memory")}
    assert well(findings) == {"host", "gpu:1"}
    assert LONG in findings[0].evidence


@pytest.mark.parametrize(
    ("system", "fault"),
    [
        ("PCIe system", "pcie-degraded"),
        ("NVLINK system", "nvlink-error"),
        ("InfoROM system", "inforom"),
        ("Thermal system", "thermal"),
        ("Power system", "power"),
        ("SM system", "unknown-code"),
        ("Driver", "unknown-code"),
        ("Quantum system", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_failure_is_named_by_its_system_and_unknown_where_nobody_knows_it(tools, system, fault):
    tools.say(troubles=[["GPU", "0", system, "Failure", "x"]])
    assert [(part, name) for part, name, _ in said(tools.look("dcgm"))] == [("gpu:0", fault)]


def test_a_warning_moves_nothing_and_is_said(tools):
    tools.say(troubles=[WARNING])
    findings = tools.look("dcgm")
    assert (said(findings), well(findings)) == (set(), BOTH)
    assert "cannot read the power" in findings[0].evidence


@pytest.mark.parametrize(
    "trouble",
    [["GPU", "7", "Memory system", "Failure", "x"], ["NvSwitch", "0", "PCIe", "Failure", "x"]],
)
def test_what_is_no_gpu_of_ours_is_of_the_host_and_leaves_no_gpu_well(tools, trouble):
    tools.say(troubles=[trouble])
    findings = tools.look("dcgm")
    assert [part for part, _, _ in said(findings)] == ["host"]
    assert well(findings) == set()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"overall": "Failure"}, "dcgm:incomplete"),
        ({"overall": "Splendid"}, "dcgm:incomplete"),
        ({"troubles": [["GPU", "0", "Memory system", "Sad", "x"]]}, "dcgm:unlisted"),
        ({"raw": {"health": ""}}, "dcgm:unreadable"),
        ({"raw": {"health": "Segmentation fault"}, "exit": {"health": 139}}, "dcgm:unreadable"),
        ({"raw": {"health": '{"body": {}}'}}, "dcgm:unreadable"),
        ({"raw": {"health": '{"body": {"Overall Health": 3}}'}}, "dcgm:incomplete"),
        ({"raw": {"health": "Error: Unable to check health watches. Return: API version mismatch"}},
         "dcgm:unreadable"),
    ],
)  # fmt: skip
def test_what_nobody_understands_is_unknown_and_no_health(tools, state, code):
    tools.say(**state)
    findings = tools.look("dcgm")
    assert {(verdict, found) for _, verdict, found in said(findings)} == {("unknown", code)}


def test_where_it_was_never_installed_nothing_is_said(tools):
    tools.remove("dcgmi")
    assert tools.look("dcgm") == ()


def test_where_it_is_installed_and_nobody_starts_it_nothing_is_said(tools):
    tools.say(engine=False)
    assert tools.look("dcgm") == ()


def test_an_engine_that_is_gone_while_nvml_answers_is_a_silent_monitor_and_moves_no_gpu(tools):
    wanted(tools)
    tools.say(engine=False)
    assert said(tools.look("dcgm")) == {GONE}


def test_an_engine_that_answered_before_is_missed(tools):
    tools.look("dcgm")
    tools.say(engine=False)
    assert said(tools.look("dcgm")) == {GONE}


@pytest.mark.parametrize("nvml", [MISSING, '{"init": [999]}'])
def test_an_engine_that_is_gone_together_with_nvml_is_unknown(tools, nvml):
    wanted(tools)
    tools.nvml(nvml)
    tools.say(engine=False)
    assert said(tools.look("dcgm")) == {("host", "unknown", "dcgm:gone")}


@pytest.mark.parametrize("how", ["hang", "half", "deaf"])
def test_an_engine_that_hangs_is_mute_and_no_hang_of_the_driver(tools, how, monkeypatch):
    monkeypatch.setattr(engine, "LIMIT", 0.4)
    tools.say(behave={"health": how})
    assert said(tools.look("dcgm")) == {("host", "monitor-silent", "dcgm:mute")}


def test_a_grandchild_that_keeps_the_pipe_open_does_not_matter(tools):
    tools.say(behave={"health": "child"})
    assert said(tools.look("dcgm")) == set()


def test_without_watches_it_can_tell_of_nothing_and_no_node_is_doubted_for_it(tools):
    tools.say(watched=False)
    findings, untold = tools.look("dcgm"), Untold()
    assert said(findings) == {("host", "unknown", "dcgm:no-watches")}
    assert well(findings) == set()
    for _ in range(5):
        untold.round(findings)
    assert untold.conditions() == {}


def test_what_it_said_outlives_its_watches_and_ends_with_a_repair_or_a_boot(tools):
    def stands(faults: FaultSet) -> bool:
        return bool(faults.faults(tools.subject.naming))

    def sick() -> FaultSet:
        faults = FaultSet()
        tools.say(troubles=[FAILING], watched=True)
        for minute in range(3):
            faults.judge(tools.look("dcgm"), NOW + timedelta(minutes=minute))
        tools.say(watched=False)
        for _ in range(3):
            faults.judge(tools.look("dcgm"), NOW)
        return faults

    faults = sick()
    assert stands(faults)
    faults.new_boot()
    assert not stands(faults)
    for kind in (Kind.RESET, Kind.VERIFY):
        for part, at, ended in (
            (Part("gpu:1"), NOW, True),
            (HOST, NOW, True),
            (Part("gpu:0"), NOW, False),
            (Part("gpu:1"), NOW - timedelta(seconds=1), False),
        ):
            faults = sick()
            apply_records(faults, [Record("r", kind, "b", (part,), 0, at)])
            assert stands(faults) is not ended


def test_only_what_lasts_stands_and_it_ends_when_the_watches_are_quiet(tools):
    faults, minute = FaultSet(), count()

    def after(rounds: int) -> list[str]:
        for _ in range(rounds):
            faults.judge(tools.look("dcgm"), NOW + timedelta(minutes=next(minute)))
        return [each.key for each in faults.faults(tools.subject.naming)]

    tools.say(troubles=[FAILING])
    assert after(2) == []
    assert after(1) == ["gpu:1 contained-memory"]
    tools.say(troubles=[])
    assert after(2) == []
    tools.say(engine=False)
    assert after(1) == []
    assert after(1) == [f"host {FaultName.MONITOR_SILENT}"]
    tools.say(engine=True)
    assert after(2) == []


def test_the_tool_is_told_where_the_engine_is_and_nothing_that_is_no_address(tools, monkeypatch):
    monkeypatch.setenv(engine.ADDRESS, "unix:///run/dcgm.sock")
    tools.look("dcgm")
    monkeypatch.setenv(engine.ADDRESS, "--set a")
    tools.look("dcgm")
    assert tools.calls == [
        "health --check --json --host unix:///run/dcgm.sock",
        "health --check --json",
    ]


ASKED = ("health --check --json", "discovery --list")


@pytest.fixture
def elsewhere(tools, tmp_path, monkeypatch):
    """The engine runs as a Pod: no `dcgmi` on the host, but one in our image, and an address."""
    ours = tmp_path / "image/bin"
    ours.mkdir(parents=True)
    (tools.root / "usr/bin/dcgmi").rename(ours / "dcgmi")
    monkeypatch.setenv("PATH", str(ours), prepend=":")
    monkeypatch.setenv(engine.ADDRESS, "10.0.0.7:5555")
    return tools


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({}, set()),
        ({"troubles": [FAILING]}, {("gpu:1", "contained-memory", "dcgm:memory")}),
        ({"behave": {"health": "hang"}}, {("host", "monitor-silent", "dcgm:mute")}),
        ({"engine": False}, {GONE}),
        ({"watched": False}, {("host", "unknown", "dcgm:no-watches")}),
    ],
)
def test_an_engine_that_is_only_a_pod_answers_like_any_other(elsewhere, state, found, monkeypatch):
    if "behave" in state:
        monkeypatch.setattr(engine, "LIMIT", 0.4)
    elsewhere.say(**state)
    assert said(elsewhere.look("dcgm")) == found
    assert {*elsewhere.calls} <= {f"{each} --host 10.0.0.7:5555" for each in ASKED}


def test_an_address_that_is_none_is_refused_with_what_one_is(capsys):
    parser = argparse.ArgumentParser()
    probe.configure(parser)
    assert parser.parse_args(["--dcgm-host", "10.0.0.7:5555"]).dcgm_host == "10.0.0.7:5555"
    with pytest.raises(SystemExit):
        parser.parse_args(["--dcgm-host=--set a"])
    assert "HOST:PORT or unix://PATH, not '--set a'" in capsys.readouterr().err


def test_it_is_well_again_when_its_engine_is_back(elsewhere):
    elsewhere.say(engine=False)
    assert said(elsewhere.look("dcgm")) == {GONE}
    elsewhere.say(engine=True)
    assert well(elsewhere.look("dcgm")) == BOTH


def test_our_own_program_looks_for_no_engine_that_nobody_named(elsewhere, monkeypatch):
    monkeypatch.delenv(engine.ADDRESS)
    assert elsewhere.look("dcgm") == ()
    assert elsewhere.calls == []


def test_a_host_with_a_program_of_its_own_is_asked_through_that(elsewhere, tools):
    elsewhere.answer("dcgmi", 'echo "Error: Unable to connect to host engine."; exit 21\n')
    elsewhere.say(process=True)
    assert said(elsewhere.look("dcgm")) == {GONE}
    assert elsewhere.calls == []


def test_without_an_engine_there_no_diagnosis_starts_one(elsewhere):
    elsewhere.say(engine=False)
    assert said(elsewhere.look("dcgm-diag")) == {("host", "unknown", "dcgm-diag:no-engine")}
    assert not (elsewhere.root / "embedded").exists()


def test_a_diagnosis_is_run_by_the_engine_that_was_named(elsewhere):
    elsewhere.look("dcgm-diag")
    (diag,) = [each for each in elsewhere.calls if each.startswith("diag ")]
    assert diag.endswith("--host 10.0.0.7:5555")


WORDS = st.sampled_from(["Healthy", "Warning", "Failure", "Sad"])
LABELS = st.text("abcGPU 01", min_size=1, max_size=8).map(str.strip).filter(bool)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(LABELS, LABELS, LABELS, WORDS), max_size=5), WORDS)
def test_the_drawn_tree_reads_as_what_it_was_drawn_from(rows, overall):
    unique = {(group, entity): (system, word) for group, entity, system, word in rows}
    troubles = [[*key, *value, "text"] for key, value in unique.items() if key[0] != "Errors"]
    report = health.read(tree(overall, troubles))
    assert report is not None
    listed = {each.value: each for each in Word if each is not Word.UNLISTED}
    assert report.overall is listed.get(overall, Word.UNLISTED)
    ordered = sorted(troubles, key=lambda each: [t[0] for t in troubles].index(each[0]))
    assert report.troubles == tuple(
        Trouble(group, entity, system, listed.get(word, Word.UNLISTED), text)
        for group, entity, system, word, text in ordered
    )


PIECES = st.sampled_from(
    ['{"body": ', '{"Overall Health": {"value": "Healthy"}', "}", "[", "null", "|", "-> ", "\n",
     "+-", "| Overall Health | Healthy |", '"children": {', "8 GPUs found.", "PCI Bus ID: 0000:1:2"]
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=20).map("".join))
def test_no_text_raises_or_becomes_health_that_it_does_not_say(text):
    discovery.read(text)
    report = health.read(text)
    assert report is None or report.overall is not Word.HEALTHY or "Healthy" in text


def test_a_report_cut_off_anywhere_is_no_report_of_health():
    whole = tree("Failure", [FAILING])
    for at in range(0, len(whole), 7):
        report = health.read(whole[:at])
        assert report is None or report.overall is not Word.HEALTHY
    assert health.read(whole) == Health(
        Word.FAILURE, (Trouble("GPU", "1", "Memory system", Word.FAILURE, LONG),)
    )
