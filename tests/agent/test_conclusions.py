"""What an agent concludes: True only where it would know of a fault."""

from datetime import UTC, datetime

import pytest

from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from probes.agent.conditions import digest
from probes.agent.core import Core
from probes.agent.memory import Doubt, load, save
from probes.kmsg import open_source
from probes.parts import Gpu
from probes.records import Kind, Record
from tests.agent.fake_machine import BOOT, FakeMachine, recovery, xid

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GPU0 = Part("gpu:0")
OK = (Finding("memory", GPU0, Verdict.OK),)


@pytest.fixture
def fake(tmp_path):
    return FakeMachine(tmp_path / "m")


def agent(fake: FakeMachine, read: bool = True) -> Core:
    """An agent that was just started, and has read the log to its end."""
    core = Core(fake.machine, load(fake.machine.state, fake.machine.boot_id(), "n1"))
    core.named({"0000:52:00": Gpu(0, "0000aaaa"), "0000:53:00": Gpu(1, "0000bbbb")})
    if read:
        read_on(core)
    return core


def read_on(core: Core) -> None:
    source = open_source(core.machine.kmsg)
    while raw := source.take(100):
        core.take(raw, NOW)
    source.close()
    core.reached_end()


def statuses(core: Core) -> dict[str, str]:
    return {
        kind.removeprefix("gpumend.io/"): f"{each.status} {each.reason}"
        for kind, each in core.conditions().items()
        if each.status != "True"
    }


def test_a_quiet_node_with_a_whole_log_is_healthy(fake):
    core = agent(fake)
    assert statuses(core) == {}
    assert {each.reason for each in core.conditions().values()} == {"Healthy"}
    assert {each.message for each in core.conditions().values()} == {f"boot={BOOT}"}


def test_a_line_becomes_a_condition_with_part_code_advice_and_keyed_id(fake):
    fake.log(xid("0000:52:00", 95), xid("0000:52:00", 95))
    said = agent(fake).conditions()["gpumend.io/Memory"]
    assert (said.status, said.reason) == ("False", "UncontainedMemory")
    assert said.message == (
        f"boot={BOOT}\npart=gpu:0 fault=uncontained-memory code=xid:95 advice=reset-gpu"
        " count=2 since=2026-11-29T12:00:00Z id=0000aaaa"
    )


def test_application_errors_move_nothing_and_are_counted(fake):
    fake.log(*[xid("0000:52:00", 31)] * 3)
    core = agent(fake)
    assert statuses(core) == {}
    assert core.moved_nothing["application", "xid:31"] == 3


@pytest.mark.parametrize("strings", [("GPU-00000000",), ("python3",), ("NVRM",), ("Ch 00000008",)])
def test_no_uuid_and_no_line_of_the_log_enters_a_condition(fake, strings):
    fake.log(xid("0000:52:00", 95), xid("0000:53:00", 79))
    text = " ".join(each.message for each in agent(fake).conditions().values())
    assert not any(each in text for each in strings)


@pytest.mark.parametrize(
    "spoil", [lambda path: path.unlink(), lambda path: path.write_text("{"), None]
)
def test_a_restart_neither_loses_nor_repeats_a_line(fake, spoil):
    fake.log(*[xid("0000:52:00", 95)] * 3)
    first = agent(fake)
    save(first.memory, fake.machine.state, "n1")
    if spoil:
        spoil(fake.machine.state / "agent.json")
    fake.log(xid("0000:52:00", 95))
    (fault,) = agent(fake).faults()
    assert fault.count == 4


def overwrite(fake: FakeMachine, lines: int = 10) -> None:
    """The kernel's buffer went round: its oldest lines are gone."""
    path = fake.root / "dev/kmsg"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[lines:]))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "StateLost"),
        (lambda path: path.write_text("{"), "StateCorrupt"),
        (lambda path: path.write_text(path.read_text().replace('"n1"', '"n2"')), "StateForeign"),
    ],
)
def test_lost_memory_and_an_overwritten_log_are_unknown_not_healthy(fake, spoil, reason):
    save(agent(fake).memory, fake.machine.state, "n1")
    spoil(fake.machine.state / "agent.json")
    fake.log(*["usb 1-1: new device"] * 20)
    overwrite(fake)
    core = agent(fake)
    everything = ["GPU", "Memory", "Fabric", "Network", "PCIe", "Thermal", "Driver", "Host"]
    assert statuses(core) == dict.fromkeys(everything, f"Unknown {reason}")
    assert core.needs_checks


def test_a_boot_whose_start_nobody_saw_is_unknown(fake):
    save(agent(fake).memory, fake.machine.state, "n1")
    fake.boot("boot-2")
    fake.log(*["usb 1-1: new device"] * 20)
    overwrite(fake)
    assert statuses(agent(fake))["GPU"] == "Unknown LogIncomplete"


def test_records_lost_on_the_way_are_a_doubt_and_counted(fake):
    core = agent(fake)
    fake.sequence += 5
    fake.log("usb 1-1: new device")
    read_on(core)
    assert core.memory.cursor.lost == 5
    assert statuses(core)["GPU"] == "Unknown LogLost"


def test_an_empty_log_proves_nothing(fake):
    (fake.root / "dev/kmsg").write_text("")
    assert statuses(agent(fake))["GPU"] == "Unknown LogEmpty"


def doubtful(fake: FakeMachine) -> Core:
    core = agent(fake)
    fake.sequence += 5
    fake.log("usb 1-1: new device")
    read_on(core)
    assert core.memory.doubt is Doubt.LOG_LOST
    return core


@pytest.mark.parametrize(
    ("findings", "proof", "lifted"),
    [
        (OK, True, True),
        (OK, False, False),
        ((), True, False),
        ((*OK, Finding("pci", HOST, Verdict.UNKNOWN)), True, False),
    ],
)
def test_a_doubt_is_lifted_when_every_check_says_ok(fake, findings, proof, lifted):
    core = doubtful(fake)
    core.found(findings, NOW)
    if proof:
        core.examined_by(findings)
    assert (not core.memory.doubt) is lifted
    assert core.settled(waited=False) is proof


def proof_of(core: Core, through: int, *parts: Part) -> Record:
    return Record("op", Kind.VERIFY, BOOT, parts, through, NOW)


def test_a_doubt_is_lifted_by_a_passed_verify_of_the_whole_node_that_is_later(fake):
    core = doubtful(fake)
    at = core.memory.cursor.sequence
    core.repaired([proof_of(core, at - 1, HOST), proof_of(core, at, GPU0)])
    assert core.memory.doubt
    core.repaired([proof_of(core, at, HOST)])
    assert not core.memory.doubt


def test_before_it_has_settled_only_faults_are_worded(fake):
    fake.log(xid("0000:52:00", 95))
    core = agent(fake, read=False)
    assert core.conditions(waited=False) == {}
    read_on(core)
    core.memory.doubt = Doubt.LOG_LOST
    assert set(core.conditions(waited=False)) == {"gpumend.io/Memory"}
    assert len(core.conditions(waited=True)) == 9


@pytest.mark.parametrize(
    ("kind", "late", "stands"),
    [
        (Kind.RESET, False, False),
        (Kind.VERIFY, False, False),
        (Kind.RESET, True, True),
        (Kind.STARTED, False, True),
        (Kind.REBOOT, False, True),
    ],
)
def test_a_recorded_repair_ends_what_the_log_said_before_it(fake, kind, late, stands):
    last = fake.log(xid("0000:52:00", 95))
    core = agent(fake)
    through = last - 1 if late else last
    core.repaired([Record("op", kind, BOOT, (GPU0,), through, NOW)])
    assert bool(core.faults()) is stands


def test_the_drivers_word_that_nothing_is_to_be_done_ends_the_faults_of_its_gpu(fake):
    fake.log(xid("0000:52:00", 95), recovery("0000:52:00", 1), xid("0000:53:00", 95))
    core = agent(fake)
    fake.log(recovery("0000:52:00", 0))
    read_on(core)
    assert [each.key for each in core.faults()] == ["gpu:1 uncontained-memory"]


def test_a_boot_ends_the_faults_and_a_lower_sequence_is_read_after_it(fake):
    fake.log(*[xid("0000:52:00", 95)] * 10)
    core = agent(fake)
    fake.boot("boot-2")
    core.booted("boot-2")
    fake.log(xid("0000:53:00", 79))
    read_on(core)
    assert [each.key for each in core.faults()] == ["pci:0000:53:00 gpu-lost"]
    core.named({"0000:53:00": Gpu(1)})
    assert [each.key for each in core.faults()] == ["gpu:1 gpu-lost"]


def test_a_reader_that_is_silent_is_our_own_fault_and_nothing_is_known(fake):
    core = agent(fake)
    core.trouble["reader:dead"] = NOW
    said = statuses(core)
    assert said["Probes"] == "False MonitorSilent"
    assert said["GPU"] == "Unknown LogUnreadable"


@pytest.mark.parametrize("code", ["senses:dead", "senses:silent"])
def test_checks_that_nobody_runs_are_our_own_fault_and_nothing_is_known(fake, code):
    core = agent(fake)
    core.trouble[code] = NOW
    said = statuses(core)
    assert said["Probes"] == "False MonitorSilent"
    assert said["Thermal"] == "Unknown ChecksSilent"


def test_a_patch_is_worth_it_when_a_count_passes_a_power_of_ten(fake):
    core = agent(fake)
    changes = []
    before = None
    for count in range(1, 101):
        fake.log(xid("0000:52:00", 95))
        read_on(core)
        now = digest(core.conditions()["gpumend.io/Memory"])
        if now != before:
            changes.append(count)
        before = now
    assert changes == [1, 10, 100]
