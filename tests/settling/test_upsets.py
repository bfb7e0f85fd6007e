"""What disturbed a machine is read from the machine: its boot, its driver, MIG, recorded resets."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.check import Check
from fleet.finding import Verdict
from fleet.part import HOST, Part
from fleet.step import NodeStepRequest, Step
from probes import checks, driver_start
from probes.agent.memory import load, save
from probes.checks.nvlink import PER_MINUTE
from probes.checks.subject import Subject
from probes.kept import Kept, read_kept
from probes.node_step.verify import CHECKS_TAKE, verify
from probes.nvml.view import GpuView, Mute, View
from probes.parts import Gpu, Naming
from probes.records import BROKEN, Kind, Record, write_record
from probes.settling import GRACE, Upset, Why
from tests.agent.fake_machine import BOOT, FakeMachine
from tests.machines.tree import KINDS, Tree, write

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
AT = 50_000.0
GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")
NAMES = {"0000:53:00": Gpu(0), "0000:54:00": Gpu(1)}
DOWN = {**dict.fromkeys(PER_MINUTE, 0), "state": 0, "speed": 26_562}
UP = {**DOWN, "state": 1}


@pytest.fixture
def tree(tmp_path):
    """Two GPUs of one link each, up for long."""
    tree = Tree(tmp_path, replace(KINDS["infiniband"], gpus=2, adapters=2))
    write(tree.root / "proc/sys/kernel/random/boot_id", BOOT)
    write(tree.root / "proc/uptime", f"{AT} 1.0")
    tree.subject.naming = Naming(NAMES, tree.root)
    tree.subject.clock = lambda: NOW
    return tree


def gpus(link=UP, mig=(0, 0)):
    links = (link,)
    each = [
        GpuView(index, f"0000:{0x53 + index:02x}:00", values={"mig_mode": mig}, links=links)
        for index in range(2)
    ]
    return View(count=2, whole=True, gpus=tuple(each))


def nvlink(tree, view, at=AT):
    """By verdict, what is said of the links; `at` is in monotonic seconds."""
    tree.subject.begin(at)
    tree.subject._view = view
    tree.subject._note_modes(view)
    return {each.verdict.value for each in checks.one(Check.NVLINK, tree.subject)}


def whys(tree, at=AT):
    tree.subject.begin(at)
    return {(each.why, each.at, each.part) for each in tree.subject.upsets()}


FOREVER = (Why.BOOT, 0.0, HOST)


def test_the_boot_is_told_by_the_uptime_and_by_nothing_else(tree):
    assert whys(tree) == {FOREVER}
    for text in ("", "soon"):
        write(tree.root / "proc/uptime", text)
        assert whys(tree) == set()


def test_links_after_a_boot_are_unknown_and_then_judged(tree):
    limit = GRACE[Check.NVLINK][Why.BOOT]
    for up, expected in ((limit - 1, {"unknown"}), (limit, {"fault"})):
        write(tree.root / "proc/uptime", f"{up} 1.0")
        assert nvlink(tree, gpus(DOWN)) == expected
    assert nvlink(tree, gpus(UP)) == {"ok"}
    write(tree.root / "proc/uptime", f"{limit - 1} 1.0")
    assert nvlink(tree, gpus(UP)) == {"unknown"}


def thread(tree, pid, name, started, parent=2):
    rest = " ".join(["S", str(parent), *["0"] * 17, str(int(started * 100)), *["0"] * 20])
    write(tree.root / f"proc/{pid}/stat", f"{pid} ({name}) {rest}")
    write(tree.root / f"proc/{pid}/comm", name)


def test_the_drivers_own_threads_tell_when_it_was_loaded(tree):
    thread(tree, 700, "nv_queue", 49_900.0)
    thread(tree, 701, "nv_queue", 49_900.5)
    thread(tree, 702, "nvme-wq", 49_999.0)
    assert whys(tree) == {FOREVER, (Why.DRIVER, 49_900.0, HOST)}
    assert nvlink(tree, gpus(DOWN)) == {"unknown"}
    assert nvlink(tree, gpus(DOWN), AT) == {"unknown"}
    thread(tree, 700, "nv_queue", 49_700.0)
    assert nvlink(tree, gpus(DOWN)) == {"fault"}


def test_a_process_that_only_calls_itself_so_grants_nothing(tree):
    thread(tree, 700, "nv_queue", 49_999.0, parent=1)
    assert driver_start.loader(tree.root) is None


def test_a_driver_that_was_loaded_again_is_found_though_its_thread_was_known(tree):
    for pid, started in ((700, 100.0), (900, 49_990.0), (700, 49_995.0)):
        thread(tree, pid, "nv_queue", started)
        assert (Why.DRIVER, started, HOST) in whys(tree)
        thread(tree, pid, "kworker", started)
    assert whys(tree) == {FOREVER}


def test_where_no_thread_is_seen_a_driver_that_says_something_else_was_loaded_since(tree):
    assert nvlink(tree, gpus(DOWN)) == {"fault"}
    write(tree.root / "proc/driver/nvidia/version", "NVRM version: Kernel Module  590.10  x")
    assert nvlink(tree, gpus(DOWN), AT + 60) == {"unknown"}
    limit = GRACE[Check.NVLINK][Why.DRIVER]
    write(tree.root / "proc/uptime", f"{AT + 500} 1.0")
    assert nvlink(tree, gpus(DOWN), AT + 60 + limit - 1) == {"unknown"}
    assert nvlink(tree, gpus(DOWN), AT + 60 + limit) == {"fault"}


def test_a_driver_that_was_away_and_came_back_was_loaded(tree):
    nvlink(tree, gpus())
    for path in ("proc/driver/nvidia/version", "sys/module/nvidia/version"):
        (tree.root / path).unlink()
    assert nvlink(tree, gpus(DOWN), AT + 60) == {"fault"}
    write(tree.root / "proc/driver/nvidia/version", "NVRM version: Kernel Module  580.65.06  x")
    assert nvlink(tree, gpus(DOWN), AT + 120) == {"unknown"}


def test_a_change_of_mig_mode_disturbs_its_gpu_until_its_grace_is_over(tree):
    limit = GRACE[Check.FABRIC][Why.MIG]
    assert nvlink(tree, gpus(DOWN)) == {"fault"}
    assert nvlink(tree, gpus(DOWN, mig=(1, 1)), AT + 60) == {"unknown"}
    assert nvlink(tree, gpus(DOWN, mig=(0, 0)), AT + 120) == {"unknown"}
    assert nvlink(tree, gpus(DOWN, mig=Mute(999)), AT + 120 + limit - 1) == {"unknown"}
    assert nvlink(tree, gpus(DOWN, mig=(0, 0)), AT + 120 + limit) == {"fault"}


def reset(tree, at, part=GPU0):
    record = Record("op-1", Kind.RESET, BOOT, (part,), 7, at)
    write_record(tree.subject.machine.state, record)


@pytest.mark.parametrize(
    ("ago", "expected"),
    [(0, {"unknown", "fault"}), (119, {"unknown", "fault"}), (120, {"fault"}), (-60, {"fault"})],
)
def test_a_recorded_reset_disturbs_the_gpu_that_was_reset(tree, ago, expected):
    reset(tree, NOW - timedelta(seconds=ago))
    assert nvlink(tree, gpus(DOWN)) == expected


def test_another_boot_begins_anew(tree):
    nvlink(tree, gpus(DOWN))
    nvlink(tree, gpus(DOWN, mig=(1, 1)), AT + 1)
    reset(tree, NOW)
    write(tree.root / "proc/sys/kernel/random/boot_id", "another")
    assert nvlink(tree, gpus(DOWN), AT + 2) == {"fault"}
    assert tree.subject.kept.boot_id == "another"


def test_an_imex_daemon_after_a_boot_is_neither_there_nor_gone(tree):
    wanted = tree.root / "etc/systemd/system/multi-user.target.wants/nvidia-imex.service"
    wanted.parent.mkdir(parents=True)
    wanted.symlink_to("/usr/lib/systemd/system/nvidia-imex.service")
    tree.subject._view = View(count=2, whole=True)

    def said(up):
        write(tree.root / "proc/uptime", f"{up} 1.0")
        tree.subject._upsets, tree.subject.at = None, AT
        return {(each.verdict, each.code) for each in checks.one(Check.DRIVER, tree.subject)}

    waits = (Verdict.UNKNOWN, "driver:settling")
    assert said(299) == {waits}
    assert said(300) == {(Verdict.FAULT, "fabric:imex-gone")}
    write(tree.root / "proc/901/comm", "nvidia-imex")
    assert said(299) == {waits}
    assert said(300) == {(Verdict.OK, "fabric:daemon-runs")}


def test_what_is_kept_outlives_a_restart_of_the_agent(tree):
    nvlink(tree, gpus(DOWN))
    nvlink(tree, gpus(DOWN, mig=(1, 1)), AT + 60)
    state = tree.subject.machine.state
    memory = load(state, BOOT, "n1")
    memory.kept = tree.subject.kept.fields()
    save(memory, state, "n1")
    kept = read_kept(load(state, BOOT, "n1").kept)
    assert kept == tree.subject.kept
    tree.subject = Subject(tree.subject.machine, Naming(NAMES), kept=kept, clock=lambda: NOW)
    assert nvlink(tree, gpus(DOWN, mig=(0, 0)), AT + 90) == {"unknown"}


@pytest.mark.parametrize(
    "broken",
    [
        {"boot_id": BOOT},
        ["x"],
        {**Kept().fields(), "upsets": [["TEA", 1.0, "host"]]},
        {**Kept().fields(), "mig": {"gpu:x": 1}},
    ],
)
def test_what_is_none_of_it_is_refused(broken):
    with pytest.raises(BROKEN):
        read_kept(json.loads(json.dumps(broken)))


def test_changes_that_nobody_settles_from_any_more_are_forgotten():
    kept = Kept()
    for number in range(100):
        kept.saw_mig(GPU0, number % 2, 1_000.0 * number)
    assert kept.upsets == [Upset(Why.MIG, 99_000.0, GPU0)]


@pytest.mark.parametrize(
    ("check", "time", "ago", "waited"),
    [
        (Check.NVLINK, CHECKS_TAKE + 120, 0, [120.0]),
        (Check.NVLINK, CHECKS_TAKE + 100, 0, []),
        (Check.NVLINK, CHECKS_TAKE + 120, 120, []),
        (Check.MEMORY, CHECKS_TAKE + 120, 0, []),
    ],
)
def test_a_verify_waits_for_what_settles_where_it_has_the_time(tmp_path, check, time, ago, waited):
    fake = FakeMachine(tmp_path / "m")
    write_record(
        fake.machine.state,
        Record("op-1", Kind.RESET, BOOT, (GPU0,), 7, NOW - timedelta(seconds=ago)),
    )
    request = NodeStepRequest(
        *("op-2", "incident", Step.VERIFY, BOOT, NOW + timedelta(seconds=time), (GPU0,), (check,))
    )
    slept: list[float] = []
    verify(fake.machine, request, lambda: NOW, wait=slept.append)
    assert slept == pytest.approx(waited)
