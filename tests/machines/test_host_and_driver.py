"""The host's disks and the driver's wholeness, and who hangs in it."""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from fleet.finding import Verdict
from probes import checks, expectations
from probes.fault_set import FaultSet
from probes.nvml.view import DRIVER_NOT_LOADED, Mute, View
from probes.parts import Gpu, Naming
from tests.machines.tree import KINDS, Tree, write
from tests.whose.proc import POD_A, Proc, in_pod

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path, KINDS["p5"])
    tree.subject._view = View(count=8, whole=True)
    return tree


def look(tree, name, seconds=60.0):
    tree.subject.at += seconds
    return {
        (each.fault or each.verdict.value, each.code)
        for each in checks.PASSIVE[name](tree.subject)
        if each.verdict is not Verdict.OK
    }


@pytest.mark.parametrize("name", ["host", "driver"])
def test_a_sound_machine_is_well(tree, name):
    assert look(tree, name) == set()
    assert len(checks.PASSIVE[name](tree.subject)) == 1


@pytest.mark.parametrize("place", ["/", "/var/lib/kubelet"])
def test_a_disk_of_the_host_that_turned_read_only_is_a_fault_until_it_is_not(tree, place):
    (tree.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    mounts = tree.root / "proc/1/mounts"
    write(mounts, f"/dev/x {place} ext4 ro,relatime,errors=remount-ro 0 0")
    assert look(tree, "host") == {("host-degraded", "host:read-only")}
    write(mounts, f"/dev/x {place} ext4 ro 0 0\n/dev/x {place} ext4 rw 0 0")
    assert look(tree, "host") == set()


def test_a_full_disk_is_a_fault(tree, monkeypatch):
    full = os.statvfs_result((4096, 4096, 1000, 50, 50, 10, 5, 5, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    assert look(tree, "host") == {("host-degraded", "host:disk-full")}


def test_a_disk_that_cannot_be_asked_is_unknown(tree):
    write(tree.root / "proc/1/mounts", "/dev/x /var/lib/kubelet ext4 rw 0 0")
    assert look(tree, "host") == {("unknown", "host:disk-unreadable")}


def test_parts_of_the_driver_that_differ_are_a_mismatch_and_no_hang(tree):
    write(tree.root / "sys/module/nvidia/version", "580.95.05")
    assert look(tree, "driver") == {("config-mismatch", "driver:versions")}


def test_a_library_of_another_version_is_a_mismatch(tree):
    tree.subject._view = View(driver="550.144.03")
    assert look(tree, "driver") == {("config-mismatch", "driver:versions")}


def test_without_a_driver_nothing_is_said_to_be_well(tree):
    (tree.root / "proc/driver/nvidia").rename(tree.root / "gone")
    assert look(tree, "driver") == {("config-mismatch", "driver:not-loaded")}
    shutil.rmtree(tree.root / "sys/bus/pci/devices")
    assert look(tree, "driver") == {("unknown", "driver:not-loaded")}


@pytest.mark.parametrize(
    ("uptime", "seen", "expected"),
    [
        ("120.50 900.10", {}, ("unknown", "driver:not-yet")),
        ("120.50 900.10", {"0000:53:00": Gpu(0)}, ("config-mismatch", "driver:not-loaded")),
        ("899.99 1.00", {}, ("unknown", "driver:not-yet")),
        ("900.00 1.00", {}, ("config-mismatch", "driver:not-loaded")),
        ("", {}, ("config-mismatch", "driver:not-loaded")),
        ("soon", {}, ("config-mismatch", "driver:not-loaded")),
    ],
)
def test_a_driver_that_this_boot_has_not_seen_is_awaited_for_a_while(tree, uptime, seen, expected):
    (tree.root / "proc/driver/nvidia").rename(tree.root / "gone")
    write(tree.root / "proc/uptime", uptime)
    tree.subject.naming = Naming(seen, tree.root)
    assert look(tree, "driver") == {expected}


def test_a_driver_that_nvml_does_not_find_is_not_there(tree):
    tree.subject._view = View(init=Mute(DRIVER_NOT_LOADED))
    assert look(tree, "driver") == {("config-mismatch", "driver:not-loaded")}
    assert look(tree, "presence") == {("unknown", "nvml:driver-not-loaded")}


def test_a_driver_that_is_away_for_less_than_three_rounds_is_being_renewed(tree):
    (tree.root / "proc/driver/nvidia").rename(tree.root / "gone")
    faults, stand = FaultSet(), []
    for minute in range(3):
        faults.judge(checks.PASSIVE["driver"](tree.subject), NOW + timedelta(minutes=minute))
        stand.append([each.key for each in faults.faults(tree.subject.naming)])
    assert stand == [[], [], ["host config-mismatch"]]


def test_the_same_thread_asleep_in_the_driver_for_three_rounds_is_a_hang(tree):
    tree.thread(4242, "D", "nv_wait_event")
    assert [look(tree, "driver") for _ in range(2)] == [set(), set()]
    assert look(tree, "driver") == {("driver-hung", "driver:stuck-thread")}
    tree.thread(4242, "S", "0")
    assert look(tree, "driver") == set()


def test_rounds_that_follow_each_other_within_seconds_are_no_hang_of_a_thread(tree):
    tree.thread(4242, "D", "nv_wait_event")
    assert [look(tree, "driver", seconds=5.0) for _ in range(12)] == [set()] * 12
    assert look(tree, "driver", seconds=5.0) == {("driver-hung", "driver:stuck-thread")}


def test_a_thread_that_hangs_is_put_down_to_its_pod(tree):
    Proc(tree.root).run(4242, in_pod(POD_A), started=1)
    tree.thread(4242, "D", "uvm_suspend")
    assert [look(tree, "driver") for _ in range(2)] == [set(), set()]
    tree.subject.at += 60.0
    found = checks.PASSIVE["driver"](tree.subject)
    assert [each.pods for each in found] == [(POD_A,)]


def test_a_thread_that_only_has_the_same_number_begins_anew(tree):
    for started in (1, 2, 3, 4):
        tree.thread(4242, "D", "uvm_suspend", started)
        assert look(tree, "driver") == set()


@pytest.mark.parametrize(
    ("state", "wchan"), [("D", "nvme_submit"), ("D", "io_schedule"), ("S", "nv_wait"), ("D", "0")]
)
def test_sleep_elsewhere_is_no_hang_of_the_driver(tree, state, wchan):
    tree.thread(4242, state, wchan)
    assert [look(tree, "driver") for _ in range(4)] == [set()] * 4


def test_where_the_kernel_tells_no_function_an_open_gpu_decides(tree):
    task = tree.thread(4242, "D", "0")
    (task / "fd/3").symlink_to("/dev/nvidia0")
    assert [look(tree, "driver") for _ in range(3)][-1] == {("driver-hung", "driver:stuck-thread")}


def test_a_thread_that_ends_while_it_is_read_is_left_out(tree):
    (tree.thread(4242, "D", "nv_wait") / "wchan").unlink()
    assert look(tree, "driver") == set()


def test_a_fabric_manager_that_should_run_and_does_not_is_a_fault(tree):
    wanted = tree.root / "etc/systemd/system/multi-user.target.wants/nvidia-fabricmanager.service"
    wanted.parent.mkdir(parents=True)
    wanted.symlink_to("/usr/lib/systemd/system/nvidia-fabricmanager.service")
    assert look(tree, "driver") == {("fabric-not-ready", "fabric:manager-gone")}
    write(tree.root / "proc/900/comm", "nv-fabricmanage")
    assert look(tree, "driver") == set()


def test_an_imex_daemon_that_should_run_and_does_not_is_a_fault(tree):
    wanted = tree.root / "etc/systemd/system/multi-user.target.wants/nvidia-imex.service"
    wanted.parent.mkdir(parents=True)
    wanted.symlink_to("/usr/lib/systemd/system/nvidia-imex.service")
    assert look(tree, "driver") == {("fabric-not-ready", "fabric:imex-gone")}
    write(tree.root / "proc/901/comm", "nvidia-imex")
    assert look(tree, "driver") == set()


def test_fewer_gpus_on_the_bus_than_expected_is_a_loss(tree, monkeypatch):
    monkeypatch.setenv(expectations.GPUS, "8")
    assert ("gpu-lost", "presence:missing") not in look(tree, "presence")
    monkeypatch.setattr("probes.checks.presence.gpus_on_bus", lambda _: frozenset({"0000:53:00"}))
    assert ("gpu-lost", "presence:missing") in look(tree, "presence")
