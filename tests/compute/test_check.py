"""The check `compute` on a machine: whom it uses, whom it leaves alone, and what may go wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from console import exits, main
from fleet.part import Part
from probes import checks
from probes.checks import compute
from probes.checks.compute_verdicts import judge
from probes.checks.subject import Subject
from probes.compute.load import WATCHES, Watcher
from probes.compute.view import read
from probes.machine import Machine
from probes.nvml.view import GpuView, Mute, View
from probes.parts import Naming
from simulator.hardware.machine import Machine as Simulated
from simulator.hardware.nature import NATURES
from tests.compute.broken import Device, address, complaints, exam_of, node

SCRIPT = "#!/bin/sh\n{}\n"
CHILD = """
import json, sys
from probes.compute import child, load
from probes.compute.examine import Sizes
from probes.compute.products import Shape
load.BATCH_SECONDS = 0.001
plan = json.dumps({**json.loads(sys.argv[1]), 'backend': 'numpy'})
sizes = Sizes(Shape(24, 16, 40), 1 << 12, 1 << 8, 0.0, 0.0)
sys.exit(child.main([plan], sizes))
"""


@pytest.fixture
def simulated(tmp_path):
    return Simulated.create(tmp_path / "m", "node-1", 3)


@pytest.fixture
def subject(simulated, tmp_path):
    found = Subject(Machine(simulated.root, tmp_path / "state"), Naming({}, simulated.root))
    found.name_gpus()
    return found


def answer(simulated, script: str) -> None:
    (simulated.root / "usr/bin/compute-child").write_text(SCRIPT.format(script))


def look(subject):
    return complaints(checks.run(["compute"], subject))


def test_what_ails_a_simulated_gpu_is_found_by_using_it_and_gone_when_it_is(simulated, subject):
    assert look(subject) == set()
    for index, nature in enumerate(("wrong-results", "slow", "lost")):
        simulated.strike(index, NATURES[nature])
    wrong = {("gpu:0", "wrong-results", "compute:products")}
    assert look(subject) == {
        *wrong,
        ("gpu:1", "slow", "compute:rate"),
        ("host", "unknown", "nvml:no-handle"),
    }
    simulated.boot()
    assert look(subject) == wrong


def test_a_gpu_with_a_process_is_not_touched_and_unknown(simulated, subject):
    simulated.hold("pod", (2,))
    assert look(subject) == {("gpu:2", "unknown", "compute:in-use")}
    simulated.hold("pod", ())
    assert look(subject) == set()


@pytest.mark.parametrize(
    ("scope", "busy", "asked", "witnesses"),
    [
        (("host",), (), 3, 0),
        (("gpu:1",), (), 1, 2),
        (("gpu:1/mig:2", "nvlink:1/4"), (), 1, 2),
        (("gpu:1",), (0,), 1, 1),
        (("gpu:1",), (1,), 0, 2),
        (("nic:x",), (), 0, 2),
    ],
)
def test_only_gpus_in_scope_are_examined_and_only_idle_ones_used(
    simulated, subject, scope, busy, asked, witnesses
):
    simulated.hold("pod", busy)
    subject.scope = tuple(Part(each) for each in scope)
    chosen = compute.choose(subject.nvml().gpus, subject)
    assert (len(chosen.parts), len(chosen.witnesses)) == (asked, witnesses)


def view_of(**values) -> GpuView:
    idle: dict[str, Any] = {"processes": (), "mig_mode": (0, 0)}
    idle |= {"memory_used": 1 << 29, "memory_total": 80 << 30}
    return GpuView(0, "0000:53:00", values={**idle, **values})


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, None),
        ({"mig_mode": Mute(3)}, None),
        ({"memory_used": Mute(3)}, None),
        ({"processes": (4_711,)}, "compute:in-use"),
        ({"memory_used": 20 << 30}, "compute:in-use"),
        ({"processes": Mute(3)}, "compute:use-unknown"),
        ({"processes": Mute(999)}, "compute:use-unknown"),
        ({"mig_mode": (1, 1)}, "compute:mig"),
    ],
)
def test_only_what_is_known_to_be_idle_is_used(values, code):
    why_not = compute.unfit(view_of(**values))
    assert (why_not[0] if why_not else None) == code


def test_a_step_that_is_nearly_over_begins_nothing(simulated, subject):
    answer(simulated, f"touch {simulated.base}/begun")
    subject.until = time.monotonic() + 10.0
    assert look(subject) == {("host", "unknown", "compute:no-time")}
    assert not (simulated.base / "begun").exists()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ('echo \'{"missing": "torch (No module named torch)"}\'', "compute:no-backend"),
        ("exit 127", "compute:broken-off"),
        ("echo Segmentation fault >&2; exit 139", "compute:broken-off"),
        ("echo nonsense", "compute:broken-off"),
    ],
)
def test_a_child_that_can_do_nothing_is_unknown_on_the_host(simulated, subject, script, code):
    answer(simulated, script)
    assert look(subject) == {("host", "unknown", code)}


def test_what_is_missing_is_said_in_words(simulated, subject):
    answer(simulated, 'echo \'{"missing": "torch (No module named torch)"}\'')
    (finding,) = checks.run(["compute"], subject)
    assert "this image has no torch" in finding.evidence
    assert "docs/operating.md" in finding.evidence


def test_a_child_that_breaks_off_keeps_what_it_told(simulated, subject):
    begun = '{"begun": "torch"}\\n{"phase": "products"}'
    answer(simulated, f"printf '{begun}\\n'; exit 1")
    found = look(subject)
    assert ("host", "unknown", "compute:broken-off") in found
    assert {each[1] for each in found} == {"unknown"}
    assert {each[0] for each in found} == {"host", "gpu:0", "gpu:1", "gpu:2"}


def test_a_child_that_overruns_is_ended_and_unknown(simulated, subject, monkeypatch):
    monkeypatch.setattr(compute, "SLACK", 0.2)
    monkeypatch.setattr(compute, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(compute, "LEAST_SECONDS", 0.0)
    answer(simulated, "exec sleep 60")
    assert ("host", "unknown", "compute:broken-off") in look(subject)


def test_one_that_cannot_be_ended_is_a_hung_driver_until_it_is_gone(
    simulated, subject, monkeypatch
):
    monkeypatch.setattr(compute, "SLACK", 0.2)
    monkeypatch.setattr(compute, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(compute, "LEAST_SECONDS", 0.0)
    answer(simulated, "trap '' TERM; while :; do sleep 60; done")
    tool = subject._tool("compute")
    try:
        assert ("host", "driver-hung", "child:hung") in look(subject)
        assert tool.outstanding
        assert ("host", "driver-hung", "child:hung") in look(subject)
    finally:
        assert tool._left
        os.killpg(tool._left.pid, signal.SIGKILL)
        tool._left.wait(60)


def test_the_real_child_runs_the_same_kernels_on_a_cpu(simulated, subject):
    (simulated.root / "child.py").write_text(CHILD)
    answer(simulated, f'exec {sys.executable} {simulated.root}/child.py "$@"')
    findings = checks.run(["compute"], subject)
    busy_cpu = "compute:odd-rate"
    assert {code for _, _, code in complaints(findings)} <= {busy_cpu}
    assert {each.part for each in findings} == {"gpu:0", "gpu:1", "gpu:2"}
    assert all("Tflop/s" in each.evidence for each in findings)


LOW = {"utilization": 100, "sm_clock": 300, "sm_clock_limit": 1980, "clock_events": 0x8}
FULL = {**LOW, "sm_clock": 1400}
CAPPED = {**LOW, "clock_events": 0x4}
OLD_LINK = {**FULL, "generation": 1, "generation_limit": 5, "clock_events": 0}
OLD_LINK |= {"performance_state": 0}
CLOCK = ("gpu:0", "slow", "compute:clock")
LINK = ("gpu:0", "pcie-degraded", "pcie:generation")
EXPLAINED = ("gpu:0", "unknown", "pcie:generation-explained")
ABSENT, BROKEN = Mute(3), Mute(999)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([[LOW], [LOW]], {CLOCK}),
        ([[LOW]], set()),
        ([[LOW], [FULL], [LOW]], set()),
        ([[LOW], [{**LOW, "utilization": 3}]], set()),
        ([[CAPPED], [CAPPED]], set()),
        ([[CAPPED], [LOW]], set()),
        ([[CAPPED, CAPPED, CAPPED]] * 2, set()),
        ([[CAPPED, FULL, FULL]] * 2, {CLOCK}),
        ([[CAPPED, FULL]] * 2, set()),
        ([[OLD_LINK], [OLD_LINK]], {LINK}),
        ([[OLD_LINK]], set()),
        ([[OLD_LINK], [{**OLD_LINK, "generation": 5}]], set()),
        ([[{**OLD_LINK, "utilization": 3}]] * 3, set()),
        ([[{**OLD_LINK, "clock_events": 0x4}]] * 2, {LINK}),
        ([[{**OLD_LINK, "clock_events": 0x40}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "clock_events": 0x1}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "performance_state": 2}]] * 2, {LINK}),
        ([[{**OLD_LINK, "performance_state": 8}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "performance_state": 8}], [OLD_LINK]], {EXPLAINED}),
        ([[{**OLD_LINK, "performance_state": 8}], [OLD_LINK], [OLD_LINK]], {LINK}),
        ([[{**OLD_LINK, "performance_state": 32}]] * 2, {LINK}),
        ([[{**OLD_LINK, "performance_state": 32, "clock_events": ABSENT}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "performance_state": ABSENT}]] * 2, {LINK}),
        ([[{**OLD_LINK, "clock_events": ABSENT}]] * 2, {LINK}),
        ([[{**OLD_LINK, "performance_state": ABSENT, "clock_events": ABSENT}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "clock_events": BROKEN}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "performance_state": BROKEN}]] * 2, {EXPLAINED}),
        ([[{**OLD_LINK, "generation_limit": BROKEN}]] * 2, set()),
        ([[{**OLD_LINK, "generation_limit": 1, "gpu_generation_limit": 5}]] * 2, set()),
    ],
)
def test_a_clock_or_a_link_is_blamed_only_for_what_several_looks_at_work_have_in_common(
    looks, expected
):
    exam = exam_of(node(*(Device() for _ in looks[0])))
    views = [
        View(gpus=tuple(GpuView(i, address(i), values=each) for i, each in enumerate(look)))
        for look in looks
    ]
    parts = {address(index): Part(f"gpu:{index}") for index in range(len(looks[0]))}
    assert complaints(judge(replace(exam, loaded=tuple(views)), parts, {})) == expected


@pytest.mark.parametrize(("size", "looks"), [(36_000, WATCHES), (60_000, 2), (200_000, 0)])
def test_nvml_is_asked_several_times_while_devices_work_as_far_as_there_is_room(
    tmp_path, size, looks
):
    script = tmp_path / "asked"
    script.write_text(f"#!/bin/sh\nhead -c {size} /dev/zero | tr '\\0' ' '\n")
    script.chmod(0o755)
    watcher = Watcher([str(script)], {})
    watcher.start()
    watcher._thread.join(60)
    lines = "\n".join(json.dumps({"loaded": each}) for each in watcher.outputs)
    assert len(read(lines).loaded) == looks


def test_no_gpu_library_comes_into_the_process_that_asks():
    script = (
        "import sys; from probes import checks; from console import probe;"
        "sys.exit(bool({'numpy', 'torch', 'pynvml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("nature", "script", "status", "said"),
    [
        ("", "", exits.OK, "560 Tflop/s, 53 GB/s from the host"),
        ("wrong-results", "", exits.FOUND, "wrong-results compute:products"),
        ("", "exit 1", exits.UNREACHABLE, "compute:broken-off"),
    ],
)
def test_a_person_on_the_node_is_shown_what_was_measured_and_unknown_is_no_success(
    simulated, monkeypatch, capsys, nature, script, status, said
):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    if nature:
        simulated.strike(1, NATURES[nature])
    if script:
        answer(simulated, script)
    arguments = ["probe", "--once", "--check", "compute", "--root", str(simulated.root)]
    assert main.main(arguments) == status
    assert said in capsys.readouterr().out
