"""The threads of the agent: a reader that dies or goes blind is noticed, doubts are looked into."""

import fcntl
import shutil
import threading
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleet.fault import Advice, FaultName
from fleet.finding import Finding, Verdict
from fleet.part import HOST
from probes import checks, expectations
from probes.agent import log_reader, run
from probes.agent.api import ApiServer
from probes.agent.publish import Publisher
from probes.agent.run import Agent, start
from probes.agent.senses import Sensed, Senses, SensesThread
from probes.kmsg import RegularFile, Source
from probes.parts import Gpu
from tests.agent.fake_machine import FakeMachine, recovery, xid
from tests.agent.process import wait_for
from tests.agent.server import ApiStand


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(run, "TICK", 0.05)
    monkeypatch.setattr(run, "SILENT_AFTER", 0.6)
    monkeypatch.setattr(run, "SETTLE_LIMIT", 3.0)
    monkeypatch.setattr("probes.checks.presence._library", lambda *_: ())  # there is none here
    monkeypatch.setattr("probes.agent.pace.PATCH_PERIOD", 0.02)
    monkeypatch.setattr("probes.agent.publish.RETRY_FIRST", 0.05)


@pytest.fixture
def fake(tmp_path):
    return FakeMachine(tmp_path / "m")


@pytest.fixture
def stand():
    stand = ApiStand()
    yield stand
    stand.close()


@pytest.fixture
def running(fake, stand):
    """Starts agents in threads of this process, and ends them."""
    started: list[tuple[Agent, threading.Thread]] = []

    def begin(routine: float = run.ROUTINE_PERIOD) -> Agent:
        server = ApiServer(stand.url)
        publisher = Publisher(server, "n1", run_clock)
        agent = start(fake.machine, "n1", b"key", publisher, routine)
        thread = threading.Thread(target=agent.run)
        thread.start()
        started.append((agent, thread))
        return agent

    yield begin
    for agent, thread in started:
        agent.stop.set()
        thread.join(10)
        assert not thread.is_alive()


def run_clock() -> datetime:
    return datetime.now(UTC)


def looked(senses: Senses, examine: bool = True) -> Sensed | None:
    """What a look ended with, None where it stood aside."""
    told: list[Sensed] = []
    return told[-1] if senses.look({}, examine, told.append) else None


SILENT, HEALTHY = ("False", "MonitorSilent"), ("True", "Healthy")


def test_a_log_that_goes_away_is_noticed_and_so_is_its_return(fake, stand, running):
    running()
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    path = fake.root / "dev/kmsg"
    path.rename(path.with_name("away"))
    stand.wait_until(lambda: stand.status("Probes") == SILENT)
    stand.wait_until(lambda: stand.status("GPU") == ("Unknown", "LogUnreadable"))
    path.with_name("away").rename(path)
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    stand.wait_until(lambda: stand.status("GPU") == HEALTHY)


class Bomb(RegularFile):
    """A source with a mistake in it: the thread that reads it dies of it."""

    armed = True

    def take(self, limit: int) -> list[bytes]:
        if Bomb.armed:
            raise RuntimeError("a mistake of ours")
        return super().take(limit)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_reader_that_died_is_noticed_and_started_again(fake, stand, running, monkeypatch):
    def bomb(path: Path) -> Source:
        return Bomb(path)

    Bomb.armed = True
    monkeypatch.setattr(log_reader, "open_source", bomb)
    running()
    stand.wait_until(lambda: stand.status("Probes") == SILENT)
    Bomb.armed = False
    fake.log(xid("0000:52:00", 95))
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    stand.wait_until(lambda: stand.status("Memory") == ("False", "UncontainedMemory"))


def test_a_log_whose_numbers_go_backwards_makes_the_reader_blind_and_is_noticed(
    fake, stand, running
):
    fake.log(*["usb 1-1: new device"] * 50)
    running()
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    fake.sequence = 3
    fake.log(xid("0000:52:00", 95))
    stand.wait_until(lambda: stand.status("Probes") == SILENT)
    fake.sequence = 60
    fake.log("usb 1-1: new device")
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)


def test_looks_that_fail_are_noticed_and_do_not_end_those_after_them(
    fake, stand, running, monkeypatch
):
    def failing(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(run, "SENSES_SILENT_AFTER", 0.3)
    agent = running(routine=0.2)
    stand.wait_until(lambda: stand.status("Thermal") == HEALTHY)
    with monkeypatch.context() as patch:
        patch.setattr(Senses, "look", failing)
        stand.wait_until(lambda: stand.status("Probes") == SILENT)
        stand.wait_until(lambda: stand.status("Thermal") == ("Unknown", "ChecksSilent"))
        assert set(agent.core.trouble) == {"senses:silent"}
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    stand.wait_until(lambda: stand.status("Thermal") == HEALTHY)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_of_checks_that_died_is_noticed(fake, stand, running, monkeypatch):
    def dying(*_):
        raise SystemExit

    running(routine=0.2)
    stand.wait_until(lambda: stand.status("Probes") == HEALTHY)
    monkeypatch.setattr(Senses, "look", dying)
    stand.wait_until(lambda: stand.status("Probes") == SILENT)
    assert "code=senses:dead" in stand.conditions["gpumend.io/Probes"]["message"]


def test_a_check_that_breaks_lifts_no_doubt(fake, stand, running, monkeypatch):
    def broken(_):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr("probes.checks.PASSIVE", {**checks.PASSIVE, "thermal": broken})
    running()
    stand.wait_until(lambda: len(stand.conditions) == 9)
    fake.sequence += 100
    fake.log("usb 1-1: new device")
    stand.wait_until(lambda: stand.status("GPU") == ("Unknown", "LogLost"))


def test_lost_records_are_looked_into_and_a_sound_machine_lifts_the_doubt(fake, stand, running):
    running()
    stand.wait_until(lambda: len(stand.conditions) == 9)
    fake.sequence += 100
    fake.log("usb 1-1: new device")
    wait_for(lambda: '"lost":100' in (fake.machine.state / "agent.json").read_text())
    wait_for(lambda: '"doubt":""' in (fake.machine.state / "agent.json").read_text())
    stand.wait_until(lambda: stand.status("GPU") == HEALTHY)  # it is saved before it is told
    assert stand.status("GPU") == HEALTHY


def test_what_was_lost_in_the_log_is_seen_by_the_checks(fake, stand, running):
    running()
    stand.wait_until(lambda: len(stand.conditions) == 9)
    fake.answer("nvidia-smi", fake.smi(action="Reset"))
    fake.sequence += 100
    fake.log("usb 1-1: new device")
    stand.wait_until(lambda: stand.status("GPU") == ("False", "FirmwareHalted"))
    assert (
        "part=gpu:0 fault=firmware-halted code=recovery-action:1"
        in (stand.conditions["gpumend.io/GPU"]["message"])
    )


def test_a_doubt_that_nothing_can_lift_is_said(fake, stand, running):
    fake.remove("nvidia-smi")
    running()
    stand.wait_until(lambda: len(stand.conditions) == 9)
    fake.sequence += 100
    fake.log("usb 1-1: new device")
    stand.wait_until(lambda: stand.status("GPU") == ("Unknown", "LogLost"))
    assert stand.status("Probes") == HEALTHY


def test_while_a_reset_holds_the_lock_the_agent_starts_no_child(fake):
    senses = Senses(fake.machine)
    fake.machine.state.mkdir(parents=True)
    fake.answer("nvidia-smi", f"touch {fake.root}/asked")
    with fake.machine.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert looked(senses) is None
    assert not (fake.root / "asked").exists()
    last = looked(senses)
    assert last
    assert last.round
    assert sorted(last.gpus) == ["0000:52:00", "0000:53:00"]


def test_a_storm_does_not_starve_the_server_of_our_word(fake, stand, running, monkeypatch):
    monkeypatch.setattr("probes.agent.publish.LEASE_PERIOD", 0.1)
    running()
    stand.wait_until(lambda: len(stand.conditions) == 9)
    fake.log(*[xid("0000:53:00", 31)] * 20_000, xid("0000:52:00", 95))
    renewed = sum("leases" in path for _, path, _ in stand.calls)
    stand.wait_until(lambda: stand.status("Memory") == ("False", "UncontainedMemory"))
    assert sum("leases" in path for _, path, _ in stand.calls) > renewed
    fake.log(recovery("0000:52:00", 0))
    stand.wait_until(lambda: stand.status("Memory") == HEALTHY)


def test_it_ends_at_once_when_asked_even_when_the_server_is_away(fake, stand):
    stand.fail_with = 503
    agent = start(fake.machine, "n1", b"", Publisher(ApiServer(stand.url), "n1", run_clock))
    thread = threading.Thread(target=agent.run)
    thread.start()
    stand.wait_until(lambda: len(stand.calls) >= 2)
    asked = time.monotonic()
    agent.stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - asked < 10


def test_what_the_log_never_said_is_found_by_the_rounds_and_ends_with_them(
    fake, stand, running, monkeypatch
):
    monkeypatch.setattr(run, "CHECK_PERIOD", 0.2)
    running(routine=0.2)
    stand.wait_until(lambda: stand.status("Memory") == HEALTHY)
    fake.answer("nvidia-smi", fake.smi(remap="No, Yes"))
    stand.wait_until(lambda: stand.status("Memory") == ("False", "MemoryExhausted"))
    fake.answer("nvidia-smi", fake.smi())
    stand.wait_until(lambda: stand.status("Memory") == HEALTHY)


class Asked(SensesThread):
    """Takes what the agent asks for; every look is over at once."""

    def __init__(self, senses: Senses) -> None:
        super().__init__(senses, lambda _: None)
        self.looks: list[list[str]] = []

    def ask(self, gpus: dict[str, Gpu], examine: bool, only: Collection[str] = ()) -> None:
        assert examine
        self.looks.append(sorted(only))


def test_what_passed_once_and_then_cannot_tell_is_not_asked_every_few_seconds_for_ever(fake):
    agent = start(fake.machine, "n1", b"", None)
    asked = Asked(agent.senses)
    agent.core.caught_up = agent.core.examined = True
    sick = Finding("pci", HOST, Verdict.FAULT, FaultName.GPU_LOST, "pci:gone", Advice.REBOOT)
    agent.core.found([sick], run_clock())
    agent.core.found([Finding("pci", HOST, Verdict.OK)], run_clock())
    for second in range(1_000, 1_100):
        agent._ask(asked, float(second))
    assert asked.looks == [[], *[["pci"]] * run.CONFIRM_ROUNDS, []]


def test_a_look_at_some_checks_runs_no_others_and_is_no_round(fake):
    told: list[Sensed] = []
    assert Senses(fake.machine).look({}, True, told.append, ("pci",))
    assert {each.check for one in told for each in one.findings} == {"driver-list", "pci"}
    assert [each.round for each in told if each.round is not None] == []
    assert [each.heard for each in told if each.heard is not None] == []


def test_a_round_keeps_the_most_gpus_that_it_ever_saw_on_the_bus(fake):
    senses = Senses(fake.machine)
    assert expectations.best_seen(fake.machine, expectations.GPUS) == 0
    looked(senses, examine=False)
    assert expectations.best_seen(fake.machine, expectations.GPUS) == 0
    looked(senses)
    assert expectations.best_seen(fake.machine, expectations.GPUS) == 2
    shutil.rmtree(fake.root / "sys/bus/pci/devices/0000:53:00.0")
    lost = looked(senses)
    assert lost
    assert "presence:missing" in {each.code for each in lost.round or ()}
    assert expectations.best_seen(fake.machine, expectations.GPUS) == 2
