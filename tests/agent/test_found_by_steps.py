"""What only a step can look for: left by a verify, published by the agent, ended by a pass."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleet.check import ACTIVE, PAIRS, Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from fleet.step import NodeStepRequest, Step
from probes import checks
from probes.agent.core import Core
from probes.agent.memory import load, save
from probes.evidence import Claim
from probes.fault_set import CLAIM_LIMIT, FaultSet
from probes.log_faults import apply_records
from probes.node_step.verify import verify
from probes.parts import Gpu, Naming
from probes.records import Kind, Record, read_record, read_records
from tests.agent.fake_machine import BOOT, FakeMachine

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GPU0, GPU1 = Part("gpu:0"), Part("gpu:1")
WRONG = Claim(GPU0, FaultName.WRONG_RESULTS, "compute:sum", Advice.REPLACE, Severity.FATAL)
SLOW = Claim(GPU1, FaultName.SLOW, "compute:rate", Advice.HOLD, Severity.DEGRADED)


def later(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def found(at: float, *claims: Claim, check: str = Check.COMPUTE, op: str = "op") -> Record:
    told = tuple((check, each) for each in claims)
    return Record(f"{op}-{at:04}", Kind.FOUND, BOOT, (HOST,), -1, later(at), found=told)


def passed(at: float, *parts: Part, check: str = Check.COMPUTE) -> Record:
    return Record(f"ok-{at:04}", Kind.VERIFY, BOOT, parts or (HOST,), -1, later(at), (check,))


@pytest.mark.parametrize(
    ("records", "stands"),
    [
        ([found(1, WRONG, SLOW)], ["gpu:0 wrong-results", "gpu:1 slow"]),
        ([found(1, WRONG), passed(2)], []),
        ([found(1, WRONG, SLOW), passed(2, GPU1)], ["gpu:0 wrong-results"]),
        ([found(1, WRONG), passed(2, check=Check.MEMORY)], ["gpu:0 wrong-results"]),
        ([found(1, WRONG), passed(2, check=Check.ALL_REDUCE)], ["gpu:0 wrong-results"]),
        ([passed(1), found(2, WRONG)], ["gpu:0 wrong-results"]),
        ([found(1, WRONG), passed(2), found(3, WRONG)], ["gpu:0 wrong-results"]),
        ([found(1, WRONG), found(2, WRONG), passed(3)], []),
    ],
)
def test_what_an_active_check_found_stands_until_the_same_check_passes(records, stands):
    faults = FaultSet()
    for _ in range(3):  # the agent reads the folder again whenever it changes
        apply_records(faults, records)
        assert [each.key for each in faults.faults(Naming())] == stands
    assert {each.count for each in faults.faults(Naming())} <= {1}


def test_nothing_that_the_agent_sees_or_that_only_repairs_ends_it():
    faults = FaultSet()
    apply_records(faults, [found(1, WRONG)])
    faults.clear(HOST)
    faults.new_boot()
    for check in (Check.PRESENCE, Check.MEMORY):
        for _ in range(9):
            faults.judge([Finding(check, GPU0, Verdict.OK)], later(5))
    reset = Record("reset", Kind.RESET, BOOT, (GPU0,), 99, later(6))
    apply_records(faults, [reset])
    assert [each.key for each in faults.faults(Naming())] == ["gpu:0 wrong-results"]


def test_it_stands_at_once_whatever_is_debounced_elsewhere():
    link = replace(WRONG, fault=FaultName.NVLINK_ERROR)
    faults = FaultSet()
    apply_records(faults, [found(1, link, check=Check.ALL_REDUCE)])
    assert [each.key for each in faults.faults(Naming())] == ["gpu:0 nvlink-error"]


def test_it_makes_no_round_of_the_agents_more_frequent_since_none_could_end_it():
    faults = FaultSet()
    apply_records(faults, [found(1, WRONG)])
    assert faults.faults(Naming())
    assert not faults.levels


def test_a_passive_check_that_a_step_passed_ends_nothing_of_the_agents():
    faults = FaultSet()
    fault = Finding(
        Check.MEMORY, GPU0, Verdict.FAULT, FaultName.UNCONTAINED_MEMORY, severity=Severity.FATAL
    )
    faults.judge([fault], NOW)
    apply_records(faults, [passed(1, check=Check.MEMORY)])
    assert faults.faults(Naming())


def test_only_so_many_are_kept():
    many = [replace(WRONG, part=Part(f"gpu:{number}")) for number in range(CLAIM_LIMIT + 5)]
    faults = FaultSet()
    apply_records(faults, [found(1, *many)])
    assert len(faults.standing) == CLAIM_LIMIT


def test_the_word_of_a_trial_in_pairs_ends_with_its_boot_or_when_a_pair_does_well():
    odd = Claim(HOST, FaultName.NIC_DEGRADED, "pairs:hung", Advice.HOLD, Severity.FATAL)
    faults = FaultSet()
    apply_records(faults, [found(1, odd, check=PAIRS)])
    assert [each.key for each in faults.faults(Naming())] == ["host nic-degraded"]
    assert [(each.fault, each.code) for each in faults.said_by(PAIRS)] == [
        (FaultName.NIC_DEGRADED, "pairs:hung")
    ]
    assert not faults.levels
    apply_records(faults, [passed(2, check=Check.ADAPTERS)])
    assert faults.faults(Naming())
    apply_records(faults, [passed(3, check=PAIRS)])
    assert not faults.faults(Naming())
    apply_records(faults, [found(4, odd, check=PAIRS)])
    faults.new_boot()
    assert not faults.faults(Naming())


@pytest.fixture
def fake(tmp_path):
    return FakeMachine(tmp_path / "m")


class Compute:
    """Stands in for the active check: what it answers is set, and how often it ran is counted."""

    def __init__(self) -> None:
        self.wrong, self.runs = True, 0

    def __call__(self, subject) -> tuple[Finding, ...]:
        del subject
        self.runs += 1
        if self.wrong:
            name, code = FaultName.WRONG_RESULTS, "compute:sum"
            sick = Finding(
                Check.COMPUTE, GPU0, Verdict.FAULT, name, code, Advice.REPLACE, Severity.FATAL
            )
            return sick, Finding(Check.COMPUTE, GPU1, Verdict.OK)
        return tuple(Finding(Check.COMPUTE, part, Verdict.OK) for part in (GPU0, GPU1))


@pytest.fixture
def compute(monkeypatch):
    check = Compute()
    monkeypatch.setattr(checks, "ACTIVE", {Check.COMPUTE: check})
    return check


def a_verify(fake, operation: str, at: float, *names: str, parts: tuple[Part, ...] = ()):
    asked = NodeStepRequest(operation, "i", Step.VERIFY, BOOT, later(60), parts, names)
    return verify(fake.machine, asked, lambda: later(at))


def agent(fake) -> Core:
    core = Core(fake.machine, load(fake.machine.state, BOOT, "n1"))
    core.named({"0000:52:00": Gpu(0, "7f3a9c01"), "0000:53:00": Gpu(1)})
    core.reached_end()
    core.repaired(read_records(fake.machine.state, BOOT))
    save(core.memory, fake.machine.state, "n1")
    return core


def test_found_by_a_verify_it_becomes_a_condition_and_a_later_verify_takes_it_back(fake, compute):
    assert a_verify(fake, "op-1", 1, Check.COMPUTE).reason == "fault-found"
    said = agent(fake).conditions()["gpumend.io/GPU"]
    assert (said.status, said.reason) == ("False", "WrongResults")
    assert "part=gpu:0 fault=wrong-results code=compute:sum" in said.message
    compute.wrong = False
    assert a_verify(fake, "op-2", 2, Check.COMPUTE).result == "done"
    assert agent(fake).faults() == ()


def test_it_outlives_the_agent_and_a_boot(fake, compute):
    a_verify(fake, "op-1", 1, Check.COMPUTE)
    agent(fake)
    assert [each.key for each in agent(fake).faults()] == ["gpu:0 wrong-results"]
    fake.boot("boot-2")
    memory = load(fake.machine.state, "boot-2", "n1")
    assert [each.key for each in memory.faults.faults(Naming())] == ["gpu:0 wrong-results"]


@pytest.mark.parametrize("known", [True, False])
def test_a_verify_runs_the_active_check_whose_finding_stands_though_nobody_listed_it(
    fake, compute, known
):
    a_verify(fake, "op-1", 1, Check.COMPUTE)
    if known:
        agent(fake)
    ending = a_verify(fake, "op-2", 2, Check.PCI, parts=(GPU0,))
    assert (ending.reason, compute.runs) == ("fault-found", 2)
    compute.wrong = False
    assert a_verify(fake, "op-3", 3, Check.PCI, parts=(GPU0,)).result == "done"
    assert agent(fake).faults() == ()
    a_verify(fake, "op-4", 4, Check.PCI)
    assert compute.runs == 3, "nothing stands any more"


def test_a_finding_on_another_gpu_does_not_load_this_one(fake, compute):
    a_verify(fake, "op-1", 1, Check.COMPUTE)
    assert a_verify(fake, "op-2", 2, Check.PCI, parts=(GPU1,)).result == "done"
    assert compute.runs == 1


def test_what_a_passive_check_found_is_left_to_the_agents_own_rounds(fake):
    fake.answer("nvidia-smi", fake.smi(ecc="1"))
    assert a_verify(fake, "op-1", 1, Check.MEMORY).reason == "fault-found"
    assert read_records(fake.machine.state, BOOT) == ()


def test_a_record_keeps_what_passed_and_what_was_found(fake, compute):
    a_verify(fake, "op-1", 1, Check.COMPUTE, Check.PCI)
    record = read_record(fake.machine.state, "op-1")
    assert record
    assert (record.kind, record.found) == (Kind.FOUND, ((Check.COMPUTE, WRONG),))
    compute.wrong = False
    a_verify(fake, "op-2", 2, Check.COMPUTE, Check.PCI)
    later_record = read_record(fake.machine.state, "op-2")
    assert later_record
    assert set(later_record.checks) == {Check.COMPUTE, Check.PCI, Check.KERNEL_LOG}


def test_active_checks_are_named_in_one_place():
    assert set(ACTIVE) == set(checks.ACTIVE)
    assert not set(ACTIVE) & set(checks.PASSIVE)
