"""From the process in a kernel line to the pod, also when the process is dead; never a guess."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.condition import parse_message
from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.part import Part
from probes.agent.core import Core
from probes.agent.memory import load, save
from probes.applications import UNKNOWN
from probes.kmsg import open_source
from probes.parts import Gpu
from probes.pod_names import FOLDER, PodName
from probes.processes import Heard, read_process
from probes.whose import PROCESSES_LIMIT, REMEMBERED, Whose, hits
from tests.agent.fake_machine import FakeMachine, xid
from tests.whose.proc import HASH, OF_THE_HOST, POD_A, POD_B, Proc, in_pod

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")
NAMES = {"0000:52:00": Gpu(0, "0000aaaa"), "0000:53:00": Gpu(1, "0000bbbb")}
LINE_AT = 100.0
CONTAINED = "Contained: SM (0x1). RST: No, D-RST: No"


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path / "m")


@pytest.fixture
def whose():
    return Whose()


def heard(proc, **pids):
    """The driver lists these processes: `gpu0=[7]`."""
    told = {"gpu0": GPU0, "gpu1": GPU1}
    running = [
        (process, told[name])
        for name, each in pids.items()
        for pid in each
        if (process := read_process(proc.root, pid))
    ]
    return Heard(frozenset(told[name] for name in pids), tuple(running))


def pods(whose, proc, pid, at=LINE_AT, now=NOW):
    return whose.pods_of(proc.root, pid, at, now)


def test_a_living_process_is_told_by_its_cgroup(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    assert pods(whose, proc, 7) == (POD_A,)


@pytest.mark.parametrize(
    "cgroup", [OF_THE_HOST, "0::/\n", ""], ids=["the host's", "untold", "unreadable"]
)
def test_a_process_of_no_pod_names_none(proc, whose, cgroup):
    proc.run(7, cgroup, started=50)
    assert pods(whose, proc, 7) == ()


@pytest.mark.parametrize("pid", [None, 0, 7])
def test_no_process_names_none(proc, whose, pid):
    assert pods(whose, proc, pid) == ()


def test_a_process_that_started_after_the_line_is_another_one(proc, whose):
    proc.run(7, in_pod(POD_B), started=LINE_AT + 1)
    assert pods(whose, proc, 7) == ()


def test_a_dead_process_is_told_from_the_rounds_before(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    whose.remember(heard(proc, gpu0=[7]), NOW)
    proc.end(7)
    assert pods(whose, proc, 7) == (POD_A,)


def test_a_dead_process_whose_id_came_again_is_still_told(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    whose.remember(heard(proc, gpu0=[7]), NOW)
    proc.run(7, in_pod(POD_B), started=LINE_AT + 1)
    assert pods(whose, proc, 7) == (POD_A,)


def test_what_was_seen_too_long_ago_is_believed_no_more(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    whose.remember(heard(proc, gpu0=[7]), NOW)
    proc.end(7)
    assert pods(whose, proc, 7, now=NOW + REMEMBERED) == (POD_A,)
    assert pods(whose, proc, 7, now=NOW + REMEMBERED + timedelta(seconds=1)) == ()


def test_where_ids_are_not_the_kernels_own_nothing_is_told(proc, whose):
    """A node inside a container: the kernel's process 7 is another than the one there."""
    proc.write("proc/2/comm", "containerd\n")
    proc.run(7, in_pod(POD_A), started=50)
    assert pods(whose, proc, 7) == ()


def test_only_so_many_processes_are_remembered_and_the_last_stay(proc, whose):
    for pid in range(1_000, 1_000 + PROCESSES_LIMIT + 1):
        proc.run(pid, in_pod(POD_A), started=50)
        whose.remember(heard(proc, gpu0=[pid]), NOW)
    assert len(whose.seen) == PROCESSES_LIMIT
    assert 1_000 not in whose.seen


def sick(part, name):
    return Finding("presence", part, Verdict.FAULT, name, "nvml:gpu-lost")


def test_a_lost_gpu_hits_whoever_was_on_it_when_the_driver_last_told(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    proc.run(8, in_pod(POD_B), started=50)
    whose.remember(heard(proc, gpu0=[7], gpu1=[8]), NOW)
    whose.remember(heard(proc, gpu1=[8]), NOW + timedelta(minutes=2))  # GPU 0 tells nothing now
    assert hits(sick(GPU0, FaultName.GPU_LOST), whose, NOW).pods == (POD_A,)
    assert hits(sick(Part("nvlink:1/7"), FaultName.NVLINK_ERROR), whose, NOW).pods == (POD_B,)


def test_who_had_left_the_gpu_was_not_hit(proc, whose):
    proc.run(7, in_pod(POD_A), started=50)
    whose.remember(heard(proc, gpu0=[7], gpu1=[]), NOW)
    whose.remember(heard(proc, gpu0=[], gpu1=[7]), NOW)
    assert hits(sick(GPU0, FaultName.GPU_LOST), whose, NOW).pods == ()
    assert hits(sick(GPU1, FaultName.GPU_LOST), whose, NOW).pods == (POD_A,)


@pytest.mark.parametrize("name", [FaultName.CONTAINED_MEMORY, FaultName.THERMAL])
def test_of_an_error_that_took_one_process_only_its_line_says_whose(proc, whose, name):
    proc.run(7, in_pod(POD_A), started=50)
    whose.remember(heard(proc, gpu0=[7]), NOW)
    assert hits(sick(GPU0, name), whose, NOW).pods == ()


# The agent: lines in, conditions out.


@pytest.fixture
def fake(tmp_path):
    fake = FakeMachine(tmp_path / "agent")
    proc = Proc(fake.root)
    proc.run(7, in_pod(POD_A), started=0)
    proc.run(8, in_pod(POD_B), started=0)
    proc.run(9, in_pod(HASH), started=0)
    return fake


def agent(fake):
    core = Core(fake.machine, load(fake.machine.state, fake.machine.boot_id(), "n1"))
    core.named(NAMES)
    return core


def read_on(core):
    source = open_source(core.machine.kmsg)
    while raw := source.take(100):
        core.take(raw, NOW)
    source.close()
    core.reached_end()


def standing(core):
    return {each.name: each.pods for each in core.faults()}


def test_a_contained_error_is_put_down_to_the_one_pod_that_it_killed(fake):
    fake.log(xid("0000:52:00", 94, f"pid=7, name=python3, {CONTAINED}"))
    core = agent(fake)
    read_on(core)
    message = core.conditions()["gpumend.io/Memory"].message
    assert message.endswith(f"id=0000aaaa pods={POD_A}")
    (fault,) = parse_message(message).faults
    assert fault.pods == (POD_A,)


def test_several_processes_are_several_pods(fake):
    for pid in (7, 8, 7, 9):
        fake.log(xid("0000:52:00", 94, f"pid={pid}, {CONTAINED}"))
    core = agent(fake)
    read_on(core)
    assert standing(core)[FaultName.CONTAINED_MEMORY] == (POD_A, POD_B, HASH)


@pytest.mark.parametrize(
    "process", ["", "pid='<unknown>', name=<unknown>, ", "pid=0, ", "pid=4711, name=gone, "]
)
def test_a_line_without_a_process_that_is_known_hits_nobody(fake, process):
    fake.log(xid("0000:52:00", 95, f"{process}Uncontained: FBHUB. RST: Yes, D-RST: No"))
    core = agent(fake)
    read_on(core)
    assert standing(core)[FaultName.UNCONTAINED_MEMORY] == ()


def test_the_process_in_a_line_about_the_whole_gpu_is_whoever_was_in_the_driver(fake):
    fake.log(xid("0000:52:00", 63, "pid=7, Row Remapper: New row marked for remapping"))
    fake.log(xid("0000:52:00", 119, "pid=7, name=nvidia-smi, Timeout waiting for RPC from GSP!"))
    core = agent(fake)
    read_on(core)
    assert set(standing(core).values()) == {()}


def test_a_line_about_the_whole_gpu_hits_those_who_were_on_it_before_it_was_printed(fake):
    fake.log("a second passes")
    fake.sequence += 1_000
    fake.log(xid("0000:52:00", 79, "pid=0, GPU has fallen off the bus."))
    Proc(fake.root).run(10, in_pod(HASH), started=60)
    core = agent(fake)
    core.heard(heard(fake, gpu0=[7, 10], gpu1=[8]), NOW)
    read_on(core)
    assert standing(core)[FaultName.GPU_LOST] == (POD_A,)


def test_a_crash_in_the_collectives_library_is_its_jobs(fake):
    where = "segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4"
    fake.log(f"pt_main_thread[7]: {where} in libnccl.so.2[7f7c7ac00000+d3d3000]")
    core = agent(fake)
    read_on(core)
    assert [(e.code, e.pod) for e in core.applications.counts] == [("app:nccl_segfault", POD_A)]


def test_two_messages_in_one_line_are_each_put_down_to_their_own(fake):
    one, other = (
        xid("0000:52:00", 94, f"pid=7, name=a, {CONTAINED}"),
        xid("0000:53:00", 94, f"pid=8, name=b, {CONTAINED}"),
    )
    fake.log(f"{one}\\x0a{other}")
    core = agent(fake)
    read_on(core)
    assert {each.part: each.pods for each in core.faults()} == {GPU0: (POD_A,), GPU1: (POD_B,)}


def test_a_fault_of_a_job_is_counted_for_the_pod_that_did_it_and_moves_nothing(fake):
    fake.log(*[xid("0000:52:00", 31, "pid=7, name=python3, Ch 00000010")] * 12)
    fake.log(xid("0000:53:00", 43, "pid=8, name=python3, channel 0x00000008"))
    fake.log(xid("0000:53:00", 13, "pid='<unknown>', name=<unknown>, Graphics Exception"))
    core = agent(fake)
    read_on(core)
    assert core.faults() == ()
    assert {(e.part, e.code, e.pod): n for e, n in core.applications.counts.items()} == {
        (GPU0, "xid:31", POD_A): 12,
        (GPU1, "xid:43", POD_B): 1,
        (GPU1, "xid:13", ""): 1,
    }
    assert [(each.code, count) for each, count in core.applications.news()] == [
        ("xid:31", 10),
        ("xid:43", 1),
        ("xid:13", 1),
    ]
    assert core.applications.news() == ()


def test_a_fault_of_a_job_goes_by_the_name_that_the_kubelet_gives_its_pod(fake):
    (fake.root / FOLDER / f"train_llm-0_{POD_A}").mkdir(parents=True)
    fake.log(xid("0000:52:00", 31, "pid=7, name=python3, Ch 00000010"))
    fake.log(xid("0000:53:00", 43, "pid=8, name=python3, channel 0x00000008"))
    core = agent(fake)
    read_on(core)
    assert core.applications.by_name() == {
        (GPU0, "xid:31", PodName("train", "llm-0")): 1,
        (GPU1, "xid:43", UNKNOWN): 1,
    }


def test_an_agent_that_was_killed_still_knows_whose_a_dead_process_was(fake):
    core = agent(fake)
    read_on(core)
    core.heard(heard(fake, gpu0=[7]), NOW)
    fake.log(xid("0000:53:00", 94, f"pid=8, {CONTAINED}"))
    read_on(core)
    save(core.memory, fake.machine.state, "n1")
    for pid in (7, 8):
        Proc(fake.root).end(pid)
    fake.log(xid("0000:52:00", 94, f"pid=7, {CONTAINED}"))
    again = agent(fake)
    read_on(again)
    assert {each.part: each.pods for each in again.faults()} == {GPU0: (POD_A,), GPU1: (POD_B,)}


def test_a_boot_forgets_every_process(fake):
    core = agent(fake)
    core.heard(heard(fake, gpu0=[7]), NOW)
    fake.boot("22222222-0000-0000-0000-000000000002")
    core.booted(fake.machine.boot_id())
    assert core.memory.whose.seen == {}
