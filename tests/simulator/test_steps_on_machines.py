"""The production steps on simulated machines: what a verify sees follows from the nature."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console import exits
from console.main import main
from fleet.instant import format_instant
from fleet.step import parse_report
from simulator.hardware.machine import Machine
from simulator.hardware.nature import (
    APPLICATION,
    DEAD,
    LOST,
    MEMORY,
    STUBBORN_MEMORY,
    WRONG_RESULTS,
)

CHECKS = ("kernel-log", "presence", "pci", "recovery-action", "memory")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch) -> Machine:
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    return Machine.create(tmp_path / "m", "node-1", gpus=2)


def step(machine, name, *parts, capsys, checks=CHECKS):
    """Run one step as a pinned Pod would; returns its exit status and its report."""
    result = machine.base / "termination-log"
    arguments = ["node-step", name, "--operation", "o-1", "--incident", "i-1"]
    arguments += ["--boot-id", machine.boot_id, "--root", str(machine.root)]
    until = format_instant(datetime.now(UTC) + timedelta(minutes=1))
    arguments += ["--not-after", until, "--result", str(result)]
    for part in parts:
        arguments += ["--part", part]
    if name == "verify":
        for check in checks:
            arguments += ["--check", check]
    status = main(arguments)
    capsys.readouterr()
    return status, parse_report(result.read_text())


def test_a_healthy_machine_passes_every_check(machine, capsys):
    assert step(machine, "verify", capsys=capsys)[0] == exits.OK


def test_a_memory_fault_fails_a_verify_until_its_gpu_was_reset(machine, capsys):
    machine.strike(1, MEMORY)
    status, report = step(machine, "verify", capsys=capsys)
    assert status == exits.FOUND
    assert "uncontained-memory" in {each.fault for each in report.findings}
    assert step(machine, "reset-gpu", "gpu:1", capsys=capsys)[0] == exits.OK
    status, report = step(machine, "verify", capsys=capsys)
    assert status == exits.OK, report


def test_a_reset_that_does_not_heal_is_done_and_the_verify_after_it_fails(machine, capsys):
    machine.strike(1, STUBBORN_MEMORY)
    assert step(machine, "reset-gpu", "gpu:1", capsys=capsys)[0] == exits.OK
    assert step(machine, "verify", capsys=capsys)[0] == exits.FOUND
    machine.boot()
    assert step(machine, "verify", capsys=capsys)[0] == exits.OK


@pytest.mark.parametrize(("nature", "after_boot"), [(LOST, exits.OK), (DEAD, exits.FOUND)])
def test_a_lost_gpu_cannot_be_reset_and_a_boot_helps_where_its_nature_lets_it(
    machine, capsys, nature, after_boot
):
    machine.strike(0, nature)
    assert step(machine, "verify", capsys=capsys)[0] == exits.FOUND
    assert step(machine, "reset-gpu", "gpu:0", capsys=capsys)[0] == exits.FOUND
    machine.boot()
    assert step(machine, "verify", capsys=capsys)[0] == after_boot


def test_a_gpu_that_a_job_holds_is_not_reset(machine, capsys):
    machine.strike(1, MEMORY)
    machine.hold("pod", (1,))
    assert step(machine, "reset-gpu", "gpu:1", capsys=capsys)[0] != exits.OK
    assert machine.read().gpus[1].resets == 0


def test_the_fault_of_a_job_leaves_the_machine_well(machine, capsys):
    machine.strike(1, APPLICATION)
    assert step(machine, "verify", capsys=capsys)[0] == exits.OK


def test_a_gpu_that_computes_wrong_passes_every_reading_and_fails_by_use(machine, capsys):
    by_use = (*CHECKS, "compute")
    assert step(machine, "verify", capsys=capsys, checks=by_use)[0] == exits.OK
    machine.strike(1, WRONG_RESULTS)
    assert step(machine, "verify", capsys=capsys)[0] == exits.OK
    status, report = step(machine, "verify", capsys=capsys, checks=by_use)
    assert status == exits.FOUND
    worst = report.findings[0]
    assert (worst.part, worst.fault, worst.check) == ("gpu:1", "wrong-results", "compute")
