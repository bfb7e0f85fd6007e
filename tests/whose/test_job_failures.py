"""Unrelated jobs that fail on one GPU accuse it; one job, or jobs that fall together, do not."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.fault import Advice, FaultName
from fleet.part import HOST, Part
from probes.agent.core import Core
from probes.agent.memory import load, save
from probes.job_failures import APART, CODE, LIMIT, WITHIN, JobFailure, JobFailures
from probes.kmsg import open_source
from probes.parts import Gpu
from probes.pod_names import FOLDER
from probes.records import Kind, Record
from tests.agent.fake_machine import BOOT, FakeMachine, xid
from tests.whose.proc import HASH, POD_A, POD_B, Proc, in_pod

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")
NAMES = {"0000:52:00": Gpu(0), "0000:53:00": Gpu(1)}
DAY, HOUR = 86_400.0, 3_600.0

Failed = tuple[float, str, Part, str]
"""When, of which namespace, where, with which code."""


def accused(*failed: Failed) -> list[float]:
    """When each claim was made."""
    failures, times = JobFailures(), []
    for number, (at, namespace, gpu, code) in enumerate(failed):
        new = JobFailure(gpu, namespace, f"pod-{number}", at, at, number)
        if failures.add(new, code) is not None:
            times.append(at)
    return times


def a(at: float, gpu: Part = GPU0, code: str = "xid:31") -> Failed:
    return at, "a", gpu, code


def b(at: float, gpu: Part = GPU0, code: str = "xid:13") -> Failed:
    return at, "b", gpu, code


@pytest.mark.parametrize(
    ("failed", "when"),
    [
        ([a(0), b(HOUR)], [HOUR]),
        ([b(0), a(APART)], [APART]),
        ([b(0), a(APART - 1)], []),
        ([a(0), b(WITHIN)], [WITHIN]),
        ([a(0), b(WITHIN + 1)], []),
        ([a(0)], []),
        ([a(at * HOUR) for at in range(20)], []),
        ([a(0), b(HOUR, GPU1)], []),
        ([a(0, GPU1), b(HOUR, GPU1), a(2 * HOUR, GPU0)], [HOUR]),
        ([a(0, code="xid:45"), b(HOUR)], []),
        ([a(0), b(HOUR, code="xid:43")], []),
        ([a(0), b(HOUR, code="xid:45"), b(2 * HOUR)], [2 * HOUR]),
        ([a(0, HOST), b(HOUR, HOST)], []),
        ([a(0), a(20 * HOUR), b(25 * HOUR)], [25 * HOUR]),
        ([a(0), a(HOUR), b(HOUR + 1)], [HOUR + 1]),
        ([a(0), b(HOUR), a(2 * HOUR), b(40 * HOUR)], [HOUR, 2 * HOUR]),
    ],
)
def test_a_gpu_is_accused_when_jobs_of_two_namespaces_failed_on_it_apart_and_in_a_day(failed, when):
    assert accused(*failed) == when


jobs = st.tuples(st.floats(0, 3 * DAY), st.sampled_from("ab"), st.sampled_from([GPU0, GPU1]))


@given(st.lists(jobs, max_size=30))
def test_whoever_is_accused_has_two_jobs_apart_within_a_day(failed):
    failed.sort()
    times = accused(*[(at, namespace, gpu, "xid:31") for at, namespace, gpu in failed])
    for at in times:
        here = {gpu for when, _, gpu in failed if when == at}
        assert any(
            APART <= at - before <= WITHIN and mine != theirs
            for before, theirs, gpu in failed
            for when, mine, _ in failed
            if when == at and gpu in here
        )


def test_what_is_remembered_is_bounded():
    failures = JobFailures()
    for number in range(3 * LIMIT):
        failures.add(JobFailure(GPU0, f"n{number}", "p", 0.0, 0.0, number), "xid:31")
    assert len(failures.seen) == LIMIT


@pytest.fixture
def fake(tmp_path):
    """GPU 0 has process 7 of a pod of namespace a, and 8 of one of namespace b."""
    fake = FakeMachine(tmp_path / "m")
    proc = Proc(fake.root)
    for pid, pod in ((7, POD_A), (8, POD_B), (9, HASH)):
        proc.run(pid, in_pod(pod), started=0)
    for namespace, name, uid in (("a", "train-0", POD_A), ("b", "serve-0", POD_B)):
        (fake.root / FOLDER / f"{namespace}_{name}_{uid}").mkdir(parents=True)
    return fake


def agent(fake):
    core = Core(fake.machine, load(fake.machine.state, fake.machine.boot_id(), "n1"))
    core.named(NAMES)
    return core


def fails(fake, core, pid, second, code=31):
    """A line of the log, so many seconds after the boot."""
    fake.sequence = int(second * 1_000)
    fake.log(xid("0000:52:00", code, f"pid={pid}, name=python3, Ch 00000010"))
    source = open_source(fake.machine.kmsg)
    while raw := source.take(100):
        core.take(raw, NOW + timedelta(seconds=second))
    source.close()
    core.reached_end()


def standing(core):
    return [(each.key, each.code, each.advice, each.pods) for each in core.faults()]


ACCUSED = ("gpu:0 unknown-code", CODE, Advice.HOLD, (POD_A, POD_B))


def test_the_agent_holds_a_gpu_on_which_jobs_of_two_namespaces_failed(fake):
    core = agent(fake)
    fails(fake, core, 7, 100)
    fails(fake, core, 7, 1_000)
    assert standing(core) == []
    fails(fake, core, 8, 2_000)
    assert standing(core) == [ACCUSED]
    message = core.conditions()["gpumend.io/GPU"].message
    assert "train" not in message, "names of pods go into no condition"
    assert "serve" not in message


def test_a_pod_whose_namespace_nobody_tells_accuses_nobody(fake):
    core = agent(fake)
    fails(fake, core, 7, 100)
    fails(fake, core, 9, 2_000)
    assert standing(core) == []


def test_an_agent_that_was_restarted_still_knows_who_failed(fake):
    core = agent(fake)
    fails(fake, core, 7, 100)
    save(core.memory, fake.machine.state, "n1")
    core = agent(fake)
    fails(fake, core, 8, 2_000)
    assert standing(core) == [ACCUSED]


def repair(kind, part=GPU0, through=150_000):
    return Record("op", kind, BOOT, (part,), through, NOW)


@pytest.mark.parametrize(
    ("record", "stands"),
    [
        (repair(Kind.RESET), []),
        (repair(Kind.VERIFY, HOST), []),
        (repair(Kind.RESET, GPU1), [ACCUSED]),
        (repair(Kind.RESET, through=50_000), [ACCUSED]),
        (repair(Kind.STARTED), [ACCUSED]),
    ],
)
def test_what_failed_before_a_repair_of_the_gpu_counts_no_more(fake, record, stands):
    core = agent(fake)
    fails(fake, core, 7, 100)
    core.repaired([record])
    fails(fake, core, 8, 2_000)
    assert standing(core) == stands


def test_the_drivers_word_that_nothing_is_to_be_done_begins_anew(fake):
    core = agent(fake)
    fails(fake, core, 7, 100)
    fails(fake, core, 8, 2_000)
    fake.log(xid("0000:52:00", 154, "GPU recovery action changed from 0x1 (x) to 0x0 (None)"))
    fails(fake, core, 8, 3_000)
    assert standing(core) == []


def test_a_boot_begins_anew(fake):
    core = agent(fake)
    fails(fake, core, 7, 100)
    fails(fake, core, 8, 2_000)
    core.booted("another")
    assert standing(core) == []
    assert core.memory.failures == JobFailures()


def test_it_is_a_fault_that_a_person_looks_at():
    failures = JobFailures()
    failures.add(JobFailure(GPU0, "a", "p", 0.0, 0.0, 1), "xid:31")
    claim = failures.add(JobFailure(GPU0, "b", "q", HOUR, HOUR, 2), "xid:31")
    assert claim is not None
    assert (claim.fault, claim.advice) == (FaultName.UNKNOWN_CODE, Advice.HOLD)
