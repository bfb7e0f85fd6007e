"""A GPU that somebody holds for whom there is no pod: said only when it lasts, and is sure."""

import os
from datetime import UTC, datetime

import pytest

from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.finding import Verdict
from fleet.part import HOST, Part
from probes import checks
from probes.checks.left_overs import listed
from probes.checks.subject import Subject
from probes.child import Tool
from probes.fault_set import FaultSet
from probes.machine import Machine
from probes.nvml.view import GpuView, Mute, View
from probes.parts import Gpu, Naming
from probes.processes import Heard
from tests.whose.proc import OF_THE_HOST, POD_A, POD_B, Proc, in_pod

ROUND = 120.0
ENOUGH = 6
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NAMING = Naming({"0000:52:00": Gpu(0), "0000:53:00": Gpu(1)})


class Node(Subject):
    """Two GPUs whose lists of processes a test sets; a round is two minutes."""

    def list(self, *pids: int, **others) -> None:
        lists = {"processes": pids, "graphics": (), "mps": (), **others}
        sick = GpuView(0, "0000:52:00", values=lists)
        idle = GpuView(1, "0000:53:00", values={"processes": (), "graphics": Mute(3)})
        self.told = View("580", 2, (sick, idle), whole=True)

    def nvml(self) -> View:
        return self.told

    def round(self):
        self.at += ROUND
        return {each.part: each for each in checks.PASSIVE[Check.LEFT_OVERS](self)}

    def rounds(self, count=ENOUGH):
        return [self.round() for _ in range(count)][-1]


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path / "m")


@pytest.fixture
def node(proc):
    node = Node(Machine(proc.root, proc.root / "state"), NAMING)
    node.list()
    return node


GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")


@pytest.mark.parametrize("kind", ["processes", "graphics", "mps"])
def test_a_process_of_the_host_that_stays_is_a_fault(node, proc, kind):
    proc.run(7, OF_THE_HOST, started=50, name="train.py")
    node.list(**{kind: (7,)})
    found = node.rounds()
    assert (found[GPU0].fault, found[GPU0].code) == (FaultName.CONFIG_MISMATCH, "process:no-pod")
    assert found[GPU0].advice is Advice.HOLD
    assert found[GPU0].evidence == "train.py (process 7) holds it, and no pod owns it"
    assert found[GPU1].verdict is Verdict.OK


def test_a_process_whose_pod_the_kubelet_has_put_away_is_a_fault(node, proc):
    proc.run(7, in_pod(POD_A), started=50)
    proc.run(8, in_pod(POD_B), started=50)
    proc.know(POD_B)
    node.list(7)
    assert node.rounds()[GPU0].code == "process:pod-gone"


def test_a_process_of_a_pod_that_is_there_is_work(node, proc):
    proc.run(7, in_pod(POD_A), started=50)
    proc.know(POD_A)
    node.list(7)
    assert node.rounds()[GPU0].verdict is Verdict.OK


def test_for_some_minutes_nothing_is_said_and_another_process_begins_anew(node, proc):
    proc.run(7, OF_THE_HOST, started=50)
    node.list(7)
    assert [node.round()[GPU0].verdict for _ in range(5)] == [Verdict.OK] * 5
    proc.run(7, OF_THE_HOST, started=900)  # the id came again
    assert [node.round()[GPU0].verdict for _ in range(5)] == [Verdict.OK] * 5
    assert node.round()[GPU0].verdict is Verdict.FAULT


def test_many_rounds_at_once_are_not_many_minutes(node, proc):
    proc.run(7, OF_THE_HOST, started=50)
    node.list(7)
    node.at = -50 * ROUND
    assert node.round()[GPU0].verdict is Verdict.OK
    node.at = 0.0
    assert node.round()[GPU0].verdict is Verdict.OK, "seen twice only"


@pytest.mark.parametrize(
    "name", ["nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine", "nvidia-smi"]
)
def test_daemons_of_the_driver_are_no_left_overs(node, proc, name):
    proc.run(7, OF_THE_HOST, started=50, name=name)
    node.list(7)
    assert node.rounds()[GPU0].verdict is Verdict.OK


def test_our_own_child_that_hangs_is_no_left_over(node, proc, monkeypatch):
    monkeypatch.setattr(Tool, "outstanding", property(lambda _: 7))
    node.tools["nvml"] = Tool("nvml")
    proc.run(7, OF_THE_HOST, started=50)
    node.list(7)
    assert node.rounds()[GPU0].verdict is Verdict.OK


def test_whose_it_is_cannot_be_told_is_no_accusation(node, proc):
    proc.run(7, "0::/\n", started=50)
    proc.run(8, in_pod(POD_A), started=50)
    (proc.root / "var/lib/kubelet/pods").rmdir()  # the kubelet keeps its pods elsewhere
    node.list(7, 8, 9)
    assert node.rounds()[GPU0].verdict is Verdict.OK


@pytest.mark.parametrize("left_behind", [False, True])
def test_a_folder_that_knows_no_pod_that_runs_is_not_the_kubelets(node, proc, left_behind):
    proc.run(7, in_pod(POD_A), started=50)
    proc.run(8, OF_THE_HOST, started=50)
    if left_behind:
        proc.know(POD_B)
    node.list(7)
    assert node.rounds()[GPU0].verdict is Verdict.OK


@pytest.mark.parametrize("code", [3, 13, 15, 999])
def test_a_driver_that_lists_nothing_says_nothing(node, proc, code):
    proc.run(7, OF_THE_HOST, started=50)
    node.list(processes=Mute(code), graphics=(7,))
    assert GPU0 not in node.rounds()


def test_without_nvml_nothing_is_said(node):
    node.told = View(init=Mute(12))
    assert node.rounds() == {}


def test_ids_of_another_namespace_are_unknown(node, proc):
    proc.write("proc/2/comm", "pause\n")
    proc.run(7, OF_THE_HOST, started=50)
    node.list(7)
    found = node.rounds()
    assert found[HOST].verdict is Verdict.UNKNOWN
    assert set(found) == {HOST}
    assert listed(node) == Heard(), "a kernel line would name somebody else by them"


def test_ids_that_the_driver_tells_another_namespace_are_unknown(node, proc):
    (proc.root / "proc/self").symlink_to("1")
    node.list(7)
    assert node.rounds()[HOST].verdict is Verdict.UNKNOWN
    (proc.root / "proc/self").unlink()
    (proc.root / "proc/self").symlink_to(str(os.getpid()))
    assert node.rounds()[GPU0].verdict is Verdict.OK


def test_it_ends_when_the_process_has_ended(node, proc):
    proc.run(7, OF_THE_HOST, started=50)
    node.list(7)
    faults = FaultSet()
    for _ in range(ENOUGH):
        faults.judge(list(node.round().values()), NOW)
    assert [each.name for each in faults.faults(NAMING)] == [FaultName.CONFIG_MISMATCH]
    proc.end(7)
    for _ in range(2):
        faults.judge(list(node.round().values()), NOW)
    assert faults.faults(NAMING) == ()
