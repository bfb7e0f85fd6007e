"""Verify, reset and reboot on a node: premise first, once, and with an answer for every end."""

import fcntl
import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import pytest

from console import main
from fleet.instant import format_instant
from fleet.part import Part
from fleet.step import NodeStepRequest, NodeStepResult, Step, parse_report
from probes.node_step import reset_gpu as reset_module
from probes.node_step.reboot import reboot
from probes.node_step.reset_gpu import reset_gpu
from probes.node_step.verify import verify
from probes.records import RECORD_LIMIT, Kind, Record, read_record, read_records, write_record
from tests.agent.fake_machine import BOOT, FakeMachine, xid

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GPU0 = Part("gpu:0")
STEPS = {Step.VERIFY: verify, Step.RESET_GPU: reset_gpu, Step.REBOOT: reboot}


@pytest.fixture
def fake(tmp_path):
    fake = FakeMachine(tmp_path / "m")
    fake.answer("systemctl", f'echo "$@" >> "{fake.root}/reboots"')
    return fake


def clock() -> datetime:
    return NOW


def request(step: Step, operation: str = "op-1", **more) -> NodeStepRequest:
    fields = {"boot_id": BOOT, "not_after": NOW + timedelta(minutes=1), "parts": (GPU0,)}
    return NodeStepRequest(operation, "incident", step, **{**fields, **more})


def acted(fake: FakeMachine, what: str) -> int:
    path = fake.root / what
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"boot_id": "another"}, "boot-changed"),
        ({"not_after": NOW}, "too-late"),
        ({"not_after": NOW - timedelta(days=1)}, "too-late"),
    ],
)
def test_a_step_whose_premise_is_gone_is_refused_and_does_nothing(fake, step, more, reason):
    ending = STEPS[step](fake.machine, request(step, **more), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.REFUSED, reason)
    assert acted(fake, "resets") == acted(fake, "reboots") == 0
    assert read_records(fake.machine.state, BOOT) == ()


@pytest.mark.parametrize("step", STEPS)
def test_a_machine_whose_boot_cannot_be_told_is_left_alone(fake, step):
    (fake.root / "proc/sys/kernel/random/boot_id").unlink()
    ending = STEPS[step](fake.machine, request(step), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.REFUSED, "boot-unknown")


def test_a_reset_names_the_gpu_by_address_and_is_recorded_with_the_logs_end(fake):
    last = fake.log(xid("0000:52:00", 95))
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    assert ending.result is NodeStepResult.DONE
    assert (fake.root / "resets").read_text() == "--gpu-reset -i 0000:52:00\n"
    record = read_record(fake.machine.state, "op-1")
    assert record == Record("op-1", Kind.RESET, BOOT, (GPU0,), last, NOW)


def test_links_and_instances_are_reset_with_their_gpus_in_one_call(fake):
    parts = tuple(Part(each) for each in ("nvlink:1/7", "gpu:0/mig:2", "gpu:0"))
    reset_gpu(fake.machine, request(Step.RESET_GPU, parts=parts), clock)
    assert (fake.root / "resets").read_text() == "--gpu-reset -i 0000:52:00,0000:53:00\n"


def test_a_line_during_the_reset_counts_against_it(fake):
    line = f"4,99,9,-;{xid('0000:52:00', 95)}"
    script = f"echo '{line}' >> {fake.root}/dev/kmsg\n{fake.smi()}"
    fake.answer("nvidia-smi", script)
    fake.log(*["usb"] * 98)
    reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    ending = verify(fake.machine, request(Step.VERIFY, "op-2"), clock)
    assert ending.reason == "fault-found"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'GPU 0 is currently in use by one or more other processes.'; exit 255", "in-use"),
        ("echo 'In use by another client'; exit 1", "in-use"),
        ("exit 4", "tool-failed"),
        ("exit 127", "no-tool"),
    ],
)
def test_a_reset_that_fails_says_why_and_is_no_verdict_on_the_hardware(fake, script, reason):
    fake.answer("nvidia-smi", script)
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.FAILED, reason)
    assert {each.verdict.value for each in ending.findings} <= {"unknown"}
    record = read_record(fake.machine.state, "op-1")
    assert record
    assert record.kind is Kind.STARTED


def test_a_reset_that_hangs_is_a_hung_driver(fake, monkeypatch):
    monkeypatch.setattr(reset_module, "RESET_LIMIT", 0.5)
    fake.answer("nvidia-smi", "exec sleep 60")
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    assert ending.reason == "hung"
    assert [each.fault for each in ending.findings] == ["driver-hung"]


@pytest.mark.parametrize(
    ("parts", "result", "reason"),
    [
        ((), NodeStepResult.REFUSED, "no-parts"),
        ((Part("gpu:7"),), NodeStepResult.FAILED, "no-address"),
        ((GPU0, Part("nic:x")), NodeStepResult.FAILED, "no-address"),
        ((Part("host"),), NodeStepResult.FAILED, "no-address"),
    ],
)
def test_a_reset_of_what_is_no_gpu_of_this_node_touches_nothing(fake, parts, result, reason):
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU, parts=parts), clock)
    assert (ending.result, ending.reason) == (result, reason)
    assert acted(fake, "resets") == 0


@pytest.mark.parametrize(("kind", "result"), [(Kind.RESET, "done"), (Kind.STARTED, "failed")])
def test_a_reset_that_was_begun_before_is_not_begun_again(fake, kind, result):
    write_record(fake.machine.state, Record("op-1", kind, BOOT, (GPU0,), 0, NOW))
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    assert ending.result == result
    assert acted(fake, "resets") == 0


def test_a_reset_waits_for_our_own_reader_of_the_gpu_and_gives_up_in_time(fake, monkeypatch):
    monkeypatch.setattr(reset_module, "LOCK_LIMIT", 0.3)
    fake.machine.state.mkdir(parents=True)
    with fake.machine.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
        assert (ending.result, ending.reason) == (NodeStepResult.FAILED, "gpu-locked")
        monkeypatch.setattr(reset_module, "LOCK_LIMIT", 30.0)
        timer = threading.Timer(0.3, lambda: fcntl.flock(lock, fcntl.LOCK_UN))
        timer.start()
        ending = reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
        timer.join()
    assert ending.result is NodeStepResult.DONE


def test_a_step_looks_at_the_time_again_when_it_has_the_lock(fake):
    times = iter([NOW, NOW + timedelta(hours=1)])
    ending = reset_gpu(fake.machine, request(Step.RESET_GPU), lambda: next(times))
    assert (ending.result, ending.reason) == (NodeStepResult.REFUSED, "too-late")
    assert acted(fake, "resets") == 0


def test_a_reboot_is_asked_for_once_an_operation(fake):
    for _ in range(3):
        assert reboot(fake.machine, request(Step.REBOOT), clock).result is NodeStepResult.DONE
    assert (fake.root / "reboots").read_text() == "reboot\n"


@pytest.mark.parametrize(
    ("script", "reason"), [("exit 1", "tool-failed"), ("exit 127", "no-tool"), (None, "no-tool")]
)
def test_a_reboot_that_could_not_be_asked_for_says_so(fake, script, reason):
    if script:
        fake.answer("systemctl", script)
    else:
        fake.remove("systemctl")
    ending = reboot(fake.machine, request(Step.REBOOT), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.FAILED, reason)


CHECKS = ("recovery-action", "memory", "presence", "pci")


def test_a_sound_node_passes_and_leaves_the_record_that_ends_its_log_faults(fake):
    fake.log(xid("0000:52:00", 95))
    reset_gpu(fake.machine, request(Step.RESET_GPU), clock)
    last = fake.log("usb 1-1: new device")
    ending = verify(fake.machine, request(Step.VERIFY, "op-2", checks=CHECKS), clock)
    assert ending.result is NodeStepResult.DONE
    assert {each.check for each in ending.findings} == {*CHECKS, "kernel-log"}
    record = read_record(fake.machine.state, "op-2")
    assert record
    assert (record.kind, record.through, record.parts) == (Kind.VERIFY, last, (GPU0,))


def spoil_log(fake):
    fake.log(xid("0000:52:00", 95))


def spoil_memory(fake):
    fake.answer("nvidia-smi", fake.smi(ecc="1"))


def spoil_tool(fake):
    fake.remove("nvidia-smi")


def spoil_cell(fake):
    fake.answer("nvidia-smi", fake.smi(action="[N/A]"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_log, "fault-found"),
        (spoil_memory, "fault-found"),
        (spoil_tool, "unknown"),
        (spoil_cell, "unknown"),
    ],
)
def test_a_fault_or_an_unknown_does_not_pass_and_leaves_no_record(fake, spoil, reason):
    spoil(fake)
    ending = verify(fake.machine, request(Step.VERIFY, checks=CHECKS), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.FAILED, reason)
    assert read_records(fake.machine.state, BOOT) == ()
    order = [each.verdict.value for each in ending.findings]
    assert order == sorted(order, key=["fault", "unknown", "ok"].index)


def test_the_log_is_read_whatever_checks_were_asked_for(fake):
    spoil_log(fake)
    assert verify(fake.machine, request(Step.VERIFY), clock).reason == "fault-found"


def test_a_check_of_another_gpu_does_not_fail_this_one(fake):
    spoil_memory(fake)
    other = request(Step.VERIFY, checks=CHECKS, parts=(Part("gpu:1"),))
    assert verify(fake.machine, other, clock).result is NodeStepResult.DONE


def test_a_check_that_said_nothing_of_the_part_does_not_pass(fake):
    other = request(Step.VERIFY, checks=("pci",), parts=(Part("gpu:9"),))
    ending = verify(fake.machine, other, clock)
    assert (ending.result, ending.reason) == (NodeStepResult.FAILED, "unknown")


def test_a_verify_stands_aside_while_a_reset_needs_the_gpu(fake):
    fake.machine.state.mkdir(parents=True)
    with fake.machine.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ending = verify(fake.machine, request(Step.VERIFY), clock)
    assert (ending.result, ending.reason) == (NodeStepResult.FAILED, "gpu-locked")


def test_a_boot_during_a_verify_makes_it_void(fake):
    boots = chain([BOOT] * 5, repeat("another"))

    class Booting:
        state, lock, kmsg, root = (
            fake.machine.state, fake.machine.lock, fake.machine.kmsg, fake.machine.root,
        )  # fmt: skip

        def boot_id(self) -> str:
            return next(boots)

    ending = verify(Booting(), request(Step.VERIFY), clock)  # type: ignore[arg-type]
    assert (ending.result, ending.reason) == (NodeStepResult.REFUSED, "boot-changed")
    assert read_records(fake.machine.state, BOOT) == ()


def command(fake: FakeMachine, step: str, *more: str) -> list[str]:
    soon = format_instant(datetime.now(UTC) + timedelta(minutes=1))
    result = f"{fake.root}/result"
    return [
        "node-step", step, "--operation", "op-1", "--incident", "i", "--boot-id", BOOT,
        "--not-after", soon, "--root", str(fake.root), "--result", result, *more,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "more", "status"),
    [
        ("verify", ("--part", "gpu:0", "--check", "memory"), 0),
        ("verify", ("--check", "horoscope"), 1),
        ("reset-gpu", ("--part", "gpu:0"), 0),
        ("reset-gpu", (), 2),
        ("reboot", (), 0),
    ],
)
def test_the_command_answers_by_status_result_file_and_log(
    fake, capsys, monkeypatch, step, more, status
):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    assert main.main(command(fake, step, *more)) == status
    report = parse_report((fake.root / "result").read_text())
    assert (report.operation, report.step, report.boot_id) == ("op-1", step, BOOT)
    assert parse_report(capsys.readouterr().out) == report


def test_bad_usage_of_the_command_is_refused_before_anything_is_done(fake, monkeypatch):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    with pytest.raises(SystemExit) as ended:
        main.main(command(fake, "reset-gpu", "--part", "gpu-0"))
    assert ended.value.code == 2
    assert acted(fake, "resets") == 0


def test_a_look_for_a_person_prints_json_and_nothing_else(fake, capsys, monkeypatch):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    fake.log(xid("0000:52:00", 95))
    assert main.main(["probe", "--once", "--json", "--root", str(fake.root)]) == 1
    printed = json.loads(capsys.readouterr().out)
    said = {each["type"]: each["status"] for each in printed["conditions"]}
    assert {each["check"] for each in printed["checks"]} >= {"memory", "presence", "host"}
    assert [kind for kind, status in said.items() if status != "True"] == ["gpumend.io/Memory"]


def test_a_look_at_one_check_is_a_table_with_its_verdict_and_time(fake, capsys, monkeypatch):
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    fake.answer("nvidia-smi", fake.smi(ecc="3"))
    arguments = ["probe", "--once", "--check", "memory", "--root", str(fake.root)]
    assert main.main(arguments) == 1
    head, sick, well, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["CHECK", "PART", "VERDICT", "SECONDS", "FINDING"]
    assert sick.split()[:3] == ["memory", "gpu:0", "fault"]
    assert "uncontained-memory ecc:uncorrected" in sick
    assert well.split()[:3] == ["memory", "gpu:1", "ok"]


def test_only_so_many_records_are_kept_and_the_newest_stay(tmp_path):
    for number in range(RECORD_LIMIT + 5):
        write_record(tmp_path, Record(f"op-{number}", Kind.VERIFY, BOOT, (GPU0,), number, NOW))
    kept = {each.through for each in read_records(tmp_path, BOOT)}
    assert len(kept) == RECORD_LIMIT
    assert RECORD_LIMIT + 4 in kept


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "reset"}', '{"kind": "dance"}'])
def test_a_broken_record_proves_nothing(tmp_path, text):
    (tmp_path / "records").mkdir()
    (tmp_path / "records/op-1.json").write_text(text)
    assert read_records(tmp_path, BOOT) == ()
    with pytest.raises(ValueError, match="not the record"):
        read_record(tmp_path, "op-1")
