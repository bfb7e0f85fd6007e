"""The machine's truth: what breaks, what heals, and what the machine's own tools say of it."""

import subprocess
from pathlib import Path

import pytest

from simulator.hardware.machine import Machine
from simulator.hardware.nature import (
    APPLICATION,
    DEAD,
    LINK_FLAP,
    LOST,
    MEMORY,
    NATURES,
    RELAPSING_MEMORY,
    STUBBORN_MEMORY,
    Nature,
)
from simulator.hardware.state import Gone, Gpu, Hardware, InUse, boot, pass_time, reset, strike

GPUS = tuple(Gpu(index, f"0000:{83 + index:02x}:00", f"GPU-{index}", "1") for index in range(2))
HEALTHY = Hardware(gpus=GPUS, boot_id="first", booted=0.0)


def struck(nature: Nature) -> Hardware:
    return strike(HEALTHY, 1, nature, 10.0)[0]


@pytest.mark.parametrize(
    ("nature", "after_reset", "after_boot"),
    [
        (MEMORY, "healed", "healed"),
        (RELAPSING_MEMORY, "healed", "healed"),
        (STUBBORN_MEMORY, "sick", "healed"),
        (LOST, "unreachable", "healed"),
        (DEAD, "unreachable", "sick"),
        (LINK_FLAP, "healed", "healed"),
    ],
)
def test_only_the_cure_of_its_nature_heals_a_fault(nature, after_reset, after_boot):
    sick = struck(nature)
    if after_reset == "unreachable":
        with pytest.raises(Gone):
            reset(sick, 1, 20.0)
    else:
        reset_gpu = reset(sick, 1, 20.0)[0].gpus[1]
        assert bool(reset_gpu.nature) == (after_reset == "sick")
    booted, lines = boot(sick, "second", 30.0)
    assert bool(booted.gpus[1].nature) == (after_boot == "sick")
    assert bool(lines) == (after_boot == "sick")


def test_a_reset_that_does_not_heal_reports_success_and_the_error_is_back():
    changed, lines = reset(struck(STUBBORN_MEMORY), 1, 20.0)
    assert any("Xid (PCI:0000:54:00): 95" in line for line in lines)
    assert changed.gpus[1].symptoms.uncorrected


def test_a_gpu_that_a_process_holds_is_not_reset():
    sick = struck(MEMORY)
    held = Hardware(sick.gpus, sick.boot_id, sick.booted, holders={"pod": (1,)})
    with pytest.raises(InUse):
        reset(held, 1, 20.0)


def test_a_boot_ends_what_held_the_gpus():
    held = Hardware(GPUS, "first", 0.0, holders={"pod": (1,)})
    assert not boot(held, "second", 30.0)[0].holders


def test_a_passing_fault_passes_and_says_so():
    sick = struck(LINK_FLAP)
    assert pass_time(sick, 13.9) == (sick, ())
    well, lines = pass_time(sick, 14.0)
    assert not well.gpus[1].nature
    assert "from 0x3 (Drain P2P) to 0x0 (None)" in lines[0]


def test_a_fault_that_was_cured_before_it_passed_is_not_announced_as_passed():
    healed = reset(struck(LINK_FLAP), 1, 11.0)[0]
    assert pass_time(healed, 20.0)[1] == ()


def test_a_relapse_comes_once():
    healed = reset(struck(RELAPSING_MEMORY), 1, 20.0)[0]
    back, lines = pass_time(healed, 24.0)
    assert back.gpus[1].nature
    assert lines
    again = reset(back, 1, 30.0)[0]
    assert not again.due
    assert not again.gpus[1].nature


def test_the_fault_of_a_job_changes_nothing_that_a_tool_shows():
    assert struck(APPLICATION).gpus[1].symptoms == GPUS[1].symptoms


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.create(tmp_path / "machine", "node-1", gpus=4)


def run(machine: Machine, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(machine.root / "usr/bin" / tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def records(machine: Machine) -> list[str]:
    return (machine.root / "dev/kmsg").read_text().splitlines()


def test_a_strike_is_seen_in_the_log_and_in_the_tools_and_a_reset_changes_both(machine):
    machine.strike(2, MEMORY)
    assert "PCI:0000:75:00): 95" in records(machine)[-2]
    query = ("nvidia-smi", "--query-gpu=index,gpu_recovery_action", "--format=csv,noheader")
    assert "2, GPU Reset" in run(machine, *query).stdout
    done = run(machine, "nvidia-smi", "--gpu-reset", "-i", "0000:75:00.0")
    assert (done.returncode, "successfully reset" in done.stdout) == (0, True)
    assert "2, None" in run(machine, *query).stdout


def test_kernel_records_count_up_and_come_from_the_kernel(machine):
    machine.strike(0, MEMORY)
    heads = [record.split(";")[0].split(",") for record in records(machine)]
    assert [int(head[1]) for head in heads] == list(range(len(heads)))
    assert all(int(head[0]) < 8 for head in heads)


def test_a_lost_gpu_reads_as_ones_and_fails_the_tool_until_the_machine_boots(machine):
    config = machine.root / "sys/bus/pci/devices/0000:64:00.0/config"
    machine.strike(1, LOST)
    assert config.read_bytes()[:4] == b"\xff" * 4
    assert run(machine, "nvidia-smi", "-L").returncode == 15
    before = machine.boot_id
    machine.boot()
    assert machine.boot_id != before
    assert config.read_bytes()[:4] == b"\xde\x10\x30\x23"
    assert not any("Xid" in record for record in records(machine))


def test_a_held_gpu_is_in_use_for_the_tool(machine):
    machine.hold("pod", (3,))
    refused = run(machine, "nvidia-smi", "--gpu-reset", "-i", "3")
    assert refused.returncode != 0
    assert "In use by another client" in refused.stdout


def test_a_reboot_that_nobody_carries_out_is_refused(machine):
    assert run(machine, "systemctl", "reboot").returncode == 1


def test_every_nature_prints_what_it_says_of_the_gpu_it_struck(machine):
    for nature in NATURES.values():
        machine.strike(0, nature)
    assert not any("{" in record for record in records(machine))
