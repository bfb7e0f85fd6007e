"""Steps on machines that break by their nature: a verify believes the machine, never the reset."""

import os
import threading
from datetime import UTC, datetime, timedelta

import pytest

from fleet.part import Part
from fleet.step import NodeStepRequest, Step
from probes.agent.once import look_once
from probes.machine import machine
from probes.node_step.reboot import reboot
from probes.node_step.reset_gpu import reset_gpu
from probes.node_step.verify import verify
from simulator.hardware.machine import Machine
from simulator.hardware.nature import NATURES

CHECKS = ("presence", "pci", "recovery-action", "memory")
GPU1 = Part("gpu:1")


@pytest.fixture
def hardware(tmp_path):
    return Machine.create(tmp_path / "base", "n1", gpus=2)


@pytest.fixture
def here(hardware):
    return machine(str(hardware.root), None, "")


def now() -> datetime:
    return datetime.now(UTC)


def request(hardware: Machine, step: Step, operation: str) -> NodeStepRequest:
    soon = now() + timedelta(minutes=5)
    return NodeStepRequest(operation, "i", step, hardware.boot_id, soon, (GPU1,), CHECKS)


def proven(hardware, here, operation: str) -> str:
    ending = verify(here, request(hardware, Step.VERIFY, operation), now)
    return ending.reason or ending.result.value


def faults(here) -> list[str]:
    """What an agent would publish now, by part and fault."""
    conditions = look_once(here, b"", now(), False).conditions
    lines = [line for each in conditions for line in each.message.splitlines()]
    return sorted(" ".join(line.split()[:2]) for line in lines if line.startswith("part="))


def boot_when_asked(hardware: Machine) -> threading.Thread:
    """Plays the power of the machine: one message on its pipe, then a boot."""
    pipe = os.open(hardware.power.pipe, os.O_RDWR)

    def wait() -> None:
        while b"reboot" not in os.read(pipe, 100):
            continue
        os.close(pipe)
        hardware.boot()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_machine_that_nothing_troubles_is_proven_sound(hardware, here):
    assert proven(hardware, here, "v") == "done"
    assert faults(here) == []


@pytest.mark.parametrize(
    ("nature", "reset", "after"),
    [
        ("memory", "done", "done"),
        ("stubborn-memory", "done", "fault-found"),
        ("lost", "tool-failed", "fault-found"),
        ("application", "done", "done"),
    ],
)
def test_a_reset_heals_by_the_nature_of_the_fault(hardware, here, nature, reset, after):
    hardware.strike(1, NATURES[nature])
    ending = reset_gpu(here, request(hardware, Step.RESET_GPU, "r"), now)
    assert (ending.reason or ending.result.value) == reset
    assert proven(hardware, here, "v") == after
    assert (faults(here) == []) is (after == "done")


@pytest.mark.parametrize(
    ("nature", "after"), [("lost", "done"), ("stubborn-memory", "done"), ("dead", "fault-found")]
)
def test_a_boot_heals_by_the_nature_of_the_fault(hardware, here, nature, after):
    hardware.strike(1, NATURES[nature])
    assert faults(here)
    before = hardware.boot_id
    booting = boot_when_asked(hardware)
    assert reboot(here, request(hardware, Step.REBOOT, "b"), now).reason == ""
    booting.join()
    assert hardware.boot_id != before
    assert proven(hardware, here, "v") == after


def test_a_gpu_that_is_in_use_is_not_reset_and_not_accused(hardware, here):
    hardware.hold("pod", (1,))
    ending = reset_gpu(here, request(hardware, Step.RESET_GPU, "r"), now)
    assert ending.reason == "in-use"
    assert hardware.read().gpus[1].resets == 0


def test_a_fault_of_the_other_gpu_does_not_keep_this_one_from_its_proof(hardware, here):
    hardware.strike(0, NATURES["memory"])
    assert proven(hardware, here, "v") == "done"
    said = [f"part=gpu:0 fault={each}-memory" for each in ("contained", "uncontained")]
    assert faults(here) == said
