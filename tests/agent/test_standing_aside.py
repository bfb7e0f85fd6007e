"""While a reset needs the GPU, nothing of the agent may hold it or ask its driver."""

import fcntl
import os
from datetime import UTC, datetime

import pytest

from fleet.check import Check
from probes import checks, child
from probes.agent.once import look_once
from probes.agent.senses import Senses
from tests.machines.tree import KINDS, Tree

MUTE = "#!/bin/sh\n"


@pytest.fixture
def machine(tmp_path):
    """An eight-GPU machine with adapters, and every tool that a check may start."""
    tree = Tree(tmp_path, KINDS["p5"])
    machine = tree.subject.machine
    machine.state.mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("boot\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("6,0,0,-;Linux version 6\n")
    (tmp_path / "usr/bin").mkdir(parents=True)
    for tool in ("nvml-child", "nvidia-smi", "dcgmi"):
        (tmp_path / "usr/bin" / tool).write_text(MUTE)
        (tmp_path / "usr/bin" / tool).chmod(0o755)
    return machine


@pytest.fixture
def started(machine, monkeypatch):
    """Every child that is started: its program, and whether it holds the host lock."""
    begun: list[tuple[str, bool]] = []
    start = child._start

    def spy(command, keep_open, environment):
        locks = [each for each in keep_open if os.path.samestat(os.fstat(each), lock())]
        begun.append((command[0], bool(locks) and not free(machine.lock)))
        return start(command, keep_open, environment)

    def lock():
        return os.stat(machine.lock)

    monkeypatch.setattr(child, "_start", spy)
    return begun


def free(lock):
    """Whether a reset could have the lock now."""
    with lock.open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_every_child_of_a_round_holds_the_lock(machine, started):
    assert Senses(machine).look({}, True, lambda _: None)
    assert len(started) >= 4
    assert [program for program, holds in started if not holds] == []
    assert free(machine.lock)


@pytest.mark.parametrize("name", [*checks.PASSIVE, "all"])
def test_while_a_reset_holds_it_no_check_starts_anything(machine, started, name):
    names = () if name == "all" else (name,)
    with machine.lock.open("w") as reset:
        fcntl.flock(reset, fcntl.LOCK_EX)
        assert not Senses(machine).look({}, True, lambda _: None)
        looked = look_once(machine, b"", datetime.now(UTC), False, names)
    assert started == []
    asked = [each for each in looked.checks if each.check != Check.KERNEL_LOG]
    assert {found.code for one in asked for found in one.findings} == {"lock:taken"}


def test_a_child_that_was_left_behind_keeps_the_lock_for_as_long_as_it_lives(machine, monkeypatch):
    monkeypatch.setattr("probes.checks.subject.TOOL_LIMIT", 0.2)
    script = machine.root / "usr/bin/nvml-child"
    until = f"while [ ! -e {machine.root}/go ]; do sleep 0.05; done"
    script.write_text(f"#!/bin/sh\ntrap '' TERM\n{until}\n")
    senses = Senses(machine)
    assert senses.look({}, True, lambda _: None)
    assert not free(machine.lock)
    (machine.root / "go").touch()
    while senses._subject.tools["nvml"].outstanding:
        os.sched_yield()
    assert free(machine.lock)
