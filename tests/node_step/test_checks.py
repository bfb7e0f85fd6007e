"""Each check against a machine that is well, sick, mute, or says what nobody understands."""

import shutil
from datetime import UTC, datetime

import pytest

from fleet.finding import Verdict
from fleet.part import HOST
from probes import checks
from probes.agent.memory import Doubt, Memory, save
from probes.checks import kernel_log, recovery_action, subject
from probes.checks.subject import Subject
from probes.kmsg import Cursor
from probes.parts import Naming
from tests.agent.fake_machine import BOOT, FakeMachine

SMI_CHECKS = ["presence", "recovery-action", "memory"]
WITHOUT_NVML = [*SMI_CHECKS, "pci"]
ONLY_NVML = ["fabric", "nvlink", "pcie", "thermal"]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "TOOL_LIMIT", 20.0)
    return FakeMachine(tmp_path / "m")


def look(fake: FakeMachine, *names: str, subject: Subject | None = None):
    subject = subject or Subject(fake.machine, Naming({}, fake.root))
    subject.name_gpus()
    return checks.run(names, subject)


def said(findings) -> set[tuple[str, str, str]]:
    """What is not ok; that there is no NVML here is said and tested elsewhere."""
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in findings
        if each.verdict is not Verdict.OK and each.code != "nvml:library-missing"
    }


@pytest.mark.parametrize("name", WITHOUT_NVML)
def test_every_check_finds_every_gpu_of_a_sound_machine_well(fake, name):
    findings = look(fake, name)
    assert said(findings) == set()
    well = {each.part for each in findings if each.verdict is Verdict.OK}
    assert well == {"gpu:0", "gpu:1"}


def test_without_nvml_what_only_it_can_tell_is_not_said_to_be_well(fake):
    assert look(fake, *ONLY_NVML) == ()


def test_a_check_that_nobody_knows_is_unknown_and_not_skipped(fake):
    assert said(look(fake, "horoscope")) == {("host", "unknown", "check:none")}


@pytest.mark.parametrize(
    ("name", "smi", "expected"),
    [
        ("recovery-action", {"action": "Reset"}, ("firmware-halted", "recovery-action:1")),
        ("recovery-action", {"action": "PF FLR"}, ("firmware-halted", "recovery-action:1")),
        ("recovery-action", {"action": "Reboot"}, ("driver-hung", "recovery-action:2")),
        ("recovery-action", {"action": "0x2 (Whatever)"}, ("driver-hung", "recovery-action:2")),
        ("recovery-action", {"action": "Drain P2P"}, ("nvlink-error", "recovery-action:3")),
        (
            "recovery-action",
            {"action": "drain and reset"},
            ("firmware-halted", "recovery-action:4"),
        ),
        ("recovery-action", {"action": "7"}, ("driver-hung", "recovery-action:7")),
        ("recovery-action", {"action": "42"}, ("unknown-code", "recovery-action:42")),
        ("recovery-action", {"action": "Sacrifice"}, ("unknown-code", "recovery-action:unlisted")),
        ("recovery-action", {"action": "[N/A]"}, ("unknown", "nvidia-smi:not-supported")),
        ("recovery-action", {"action": "ERR!"}, ("unknown", "nvidia-smi:error-cell")),
        ("recovery-action", {"action": "[Unknown Error]"}, ("unknown", "nvidia-smi:error-cell")),
        ("memory", {"ecc": "3"}, ("uncontained-memory", "ecc:uncorrected")),
        ("memory", {"ecc": "N/A"}, ("unknown", "nvidia-smi:not-supported")),
        ("memory", {"ecc": "ERR!"}, ("unknown", "nvidia-smi:error-cell")),
        ("memory", {"ecc": "-1"}, ("unknown", "memory:unreadable")),
        ("memory", {"remap": "Yes, No"}, ("contained-memory", "remap:pending")),
        ("memory", {"remap": "1, 0"}, ("contained-memory", "remap:pending")),
        ("memory", {"remap": "No, Yes"}, ("memory-exhausted", "remap:failure")),
        ("memory", {"remap": "[N/A], No"}, ("unknown", "nvidia-smi:not-supported")),
        ("memory", {"remap": "No, maybe"}, ("unknown", "memory:unreadable")),
    ],
)
def test_a_cell_has_one_reading_and_only_a_good_value_reads_as_well(fake, name, smi, expected):
    fake.answer("nvidia-smi", fake.smi(**smi))
    findings = look(fake, name)
    assert said(findings) == {("gpu:0", *expected)}
    assert [each.part for each in findings if each.verdict is Verdict.OK] == ["gpu:1"]


@pytest.mark.parametrize("name", SMI_CHECKS)
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", ("unknown", "nvidia-smi:empty")),
        ("echo No devices were found; exit 6", ("unknown", "nvidia-smi:no-devices")),
        ("echo 'x is not a valid field to query.'; exit 2", ("unknown", "nvidia-smi:unsupported")),
        ("exit 9", ("unknown", "nvidia-smi:driver-not-loaded")),
        ("echo Failed to initialize NVML: Driver/library version mismatch; exit 18",
         ("config-mismatch", "nvidia-smi:version-mismatch")),
        ("exit 16", ("firmware-halted", "nvidia-smi:reset-required")),
        ("exit 127", ("unknown", "nvidia-smi:missing")),
        ("kill -9 $$", ("unknown", "nvidia-smi:exit--9")),
        ("head -c 100000 /dev/urandom", ("unknown", "nvidia-smi:unreadable")),
    ],
)  # fmt: skip
def test_a_tool_that_answers_badly_is_unknown_or_a_fault_of_the_host(fake, name, script, expected):
    fake.answer("nvidia-smi", script)
    findings = look(fake, name)
    assert ("host", *expected) in said(findings)
    assert not any(each.verdict is Verdict.OK for each in findings)


def test_a_lost_gpu_is_named_by_the_tools_own_message(fake):
    fake.answer(
        "nvidia-smi",
        "echo 'Unable to determine the device handle for GPU0000:53:00.0: GPU is lost.'; exit 15",
    )
    assert ("gpu:1", "gpu-lost", "nvidia-smi:gpu-lost") in said(look(fake, "memory"))


@pytest.mark.parametrize("name", SMI_CHECKS)
def test_a_tool_that_is_not_there_is_unknown(fake, name):
    fake.remove("nvidia-smi")
    assert said(look(fake, name)) == {("host", "unknown", "nvidia-smi:missing")}


@pytest.mark.parametrize("name", SMI_CHECKS)
def test_a_tool_that_hangs_is_a_hung_driver_also_after_half_an_answer(fake, name, monkeypatch):
    monkeypatch.setattr(Subject.run, "__kwdefaults__", {"limit": 0.5, "grace": 0.5})
    fake.answer("nvidia-smi", "echo '00000000:52:00.0, 0'; exec sleep 60")
    assert said(look(fake, name)) == {("host", "driver-hung", "child:hung")}


@pytest.mark.parametrize("name", SMI_CHECKS)
def test_a_tool_that_does_not_answer_for_a_gpu_never_makes_it_well(fake, name):
    first = fake.smi().replace('echo "00000000:53:00.0', ': "')
    fake.answer("nvidia-smi", first)
    findings = look(fake, name)
    well = {each.part for each in findings if each.verdict is Verdict.OK}
    assert "gpu:1" not in well


def test_a_gpu_on_the_bus_that_the_driver_does_not_have_is_lost(fake):
    fake.answer("nvidia-smi", "echo '00000000:52:00.0, 0'")
    assert said(look(fake, "presence")) == {("gpu:1", "gpu-lost", "presence:not-in-driver")}


def test_a_gpu_that_left_the_bus_in_this_boot_is_lost_even_when_the_tool_is_mute(fake):
    subject = Subject(fake.machine, Naming({}, fake.root))
    subject.name_gpus()
    shutil.rmtree(fake.root / "sys/bus/pci/devices/0000:53:00.0")
    shutil.rmtree(fake.root / "proc/driver/nvidia/gpus/0000:53:00.0")
    fake.remove("nvidia-smi")
    found = said(look(fake, "presence", subject=subject))
    assert ("gpu:1", "gpu-lost", "presence:off-bus") in found


def test_no_gpu_at_all_is_unknown(fake):
    for folder in ("sys/bus/pci/devices", "proc/driver/nvidia/gpus"):
        shutil.rmtree(fake.root / folder)
        (fake.root / folder).mkdir()
    assert said(look(fake, "presence", "pci")) == {
        ("host", "unknown", "presence:none"),
        ("host", "unknown", "pci:none"),
    }


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (b"\xff\xff\xff\xff", ("gpu-lost", "pci:all-ones")),
        (b"\xff\xff", ("unknown", "pci:unreadable")),
        (b"", ("unknown", "pci:unreadable")),
    ],
)
def test_config_space_is_the_witness_of_a_lost_gpu(fake, word, expected):
    (fake.root / "sys/bus/pci/devices/0000:52:00.0/config").write_bytes(word)
    assert said(look(fake, "pci")) == {("gpu:0", *expected)}


def test_config_space_that_cannot_be_read_is_unknown(fake):
    config = fake.root / "sys/bus/pci/devices/0000:52:00.0/config"
    config.unlink()
    assert said(look(fake, "pci")) == {("gpu:0", "unknown", "pci:unreadable")}


@pytest.mark.parametrize("label", ["None", "none", " None ", "0", "0x0", "0x0 (Anything)"])
def test_nothing_to_do_is_said_in_several_ways(label):
    assert recovery_action.value_of(label) == 0


def test_no_evidence_holds_the_serial_number_of_a_gpu(fake):
    fake.answer("nvidia-smi", "echo GPU-0a1b2c3d-aaaa-bbbb-cccc-0123456789ab is sad; exit 99")
    assert "0a1b2c3d" not in str(look(fake, *checks.PASSIVE))


def test_the_log_check_answers_for_what_it_read_and_never_for_what_it_did_not(fake):
    now = datetime.now(UTC)
    naming = Naming({}, fake.root)
    host = [HOST]

    def codes() -> set[str]:
        findings, _ = kernel_log.check(fake.machine, naming, host, now)
        return {each.code for each in findings}

    assert codes() == {""}
    path = fake.root / "dev/kmsg"
    whole = path.read_text()
    path.write_text("")
    assert codes() == {"kmsg:empty"}
    path.write_text("6,500,1,-;usb\n")
    assert codes() == {"kmsg:incomplete"}
    save(Memory(Cursor(BOOT, sequence=499, first=90)), fake.machine.state, "n1")
    assert codes() == {""}, "the agent remembers what is overwritten"
    save(Memory(Cursor(BOOT, sequence=498, first=90)), fake.machine.state, "n1")
    assert codes() == {"kmsg:incomplete"}
    save(Memory(Cursor(BOOT, sequence=499), doubt=Doubt.LOG_LOST), fake.machine.state, "n1")
    assert codes() == {"kmsg:incomplete"}
    path.unlink()
    assert codes() == {"kmsg:unreadable"}
    path.write_text(whole)
    (fake.root / "proc/sys/kernel/random/boot_id").write_text("")
    assert codes() == {"kmsg:unreadable"}
    assert BOOT not in str(codes())
