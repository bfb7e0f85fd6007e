"""What stands, and what ends it: the clearing rule as a table."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from probes.evidence import Claim, driver_verdict
from probes.fault_set import CLAIM_LIMIT, PASSES, STRIKE_GAP, FaultSet
from probes.parts import Gpu, Naming

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
GPU3, MIG, LINK, GPU4 = (Part(text) for text in ("gpu:3", "gpu:3/mig:1", "nvlink:3/7", "gpu:4"))
NAMING = Naming({"0000:52:00": Gpu(3, "7f3a9c01")})


def claim(part=GPU3, fault="uncontained-memory", code="xid:95", advice="reset-gpu", **more):
    severity = Severity(more.pop("severity", "fatal"))
    return Claim(part, FaultName(fault), code, Advice(advice), severity, **more)


def verdict(value, part=GPU3):
    said = driver_verdict(part, value, "xid:154")
    assert isinstance(said, Claim)
    return said


def standing(faults: FaultSet) -> list[str]:
    return [each.key for each in faults.faults(NAMING)]


def with_everything() -> FaultSet:
    faults = FaultSet()
    for sequence, part in enumerate((GPU3, MIG, LINK, GPU4, HOST), start=10):
        faults.claim(claim(part), sequence, NOW)
    return faults


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (lambda faults: faults.new_boot(), ()),
        (lambda faults: faults.clear(GPU3), (GPU4, HOST)),
        (lambda faults: faults.clear(MIG), (GPU4, HOST)),
        (lambda faults: faults.clear(GPU4), (GPU3, HOST, LINK, MIG)),
        (lambda faults: faults.clear(HOST), ()),
        (lambda faults: faults.clear(GPU3, through=9), (GPU3, GPU4, HOST, LINK, MIG)),
        (lambda faults: faults.clear(GPU3, through=10), (GPU4, HOST, LINK, MIG)),
        (lambda faults: faults.clear(GPU3, through=-1), (GPU3, GPU4, HOST, LINK, MIG)),
        (lambda faults: faults.clear(HOST, through=13), (HOST,)),
        (lambda faults: faults.judge((), NOW), (GPU3, GPU4, HOST, LINK, MIG)),
    ],
)
def test_a_fault_of_the_log_ends_by_positive_evidence_and_by_nothing_else(end, left):
    faults = with_everything()
    end(faults)
    assert sorted(old.claim.part for old in faults.standing.values()) == sorted(left)


def test_a_line_after_the_reset_keeps_the_fault():
    faults = FaultSet()
    faults.claim(claim(), 10, NOW)
    faults.claim(claim(), 20, NOW)
    faults.clear(GPU3, through=15)
    assert standing(faults) == ["gpu:3 uncontained-memory"]


def test_count_since_code_and_advice_of_a_fault_come_from_all_its_lines():
    faults = FaultSet()
    later = NOW + timedelta(minutes=1)
    faults.claim(claim(code="xid:95"), 1, NOW)
    faults.claim(claim(code="xid:95"), 2, later)
    faults.claim(claim(code="xid:171", advice="reboot"), 3, later)
    (fault,) = faults.faults(NAMING)
    assert (fault.count, fault.since, fault.advice, fault.id) == (3, NOW, "reboot", "7f3a9c01")


def test_the_code_of_a_fault_does_not_flap_between_equally_bad_lines():
    faults = FaultSet()
    seen = set()
    for sequence in range(10):
        faults.claim(claim(code=f"xid:{95 + sequence % 2}"), sequence, NOW)
        seen.add(faults.faults(NAMING)[0].code)
    assert seen == {"xid:95"}


def test_faults_come_worst_first():
    faults = FaultSet()
    faults.claim(claim(fault="contained-memory", advice="hold", severity="degraded"), 1, NOW)
    faults.claim(claim(fault="unknown-code", advice="hold", severity="unknown"), 2, NOW)
    faults.claim(claim(fault="gpu-lost", advice="reboot"), 3, NOW)
    faults.claim(claim(), 4, NOW)
    names = [each.name.value for each in faults.faults(NAMING)]
    assert names == ["gpu-lost", "uncontained-memory", "contained-memory", "unknown-code"]


@pytest.mark.parametrize("first", ["verdict", "memory"])
def test_a_memory_fault_explains_the_drivers_wish_for_a_reset_in_any_order(first):
    faults = FaultSet()
    lines = [verdict(1), claim(fault="contained-memory", code="xid:94", advice="hold")]
    for sequence, line in enumerate(lines if first == "verdict" else reversed(lines)):
        faults.claim(line, sequence, NOW)
    (fault,) = faults.faults(NAMING)
    assert (fault.name, fault.code, fault.advice) == ("contained-memory", "xid:94", "reset-gpu")


def test_the_drivers_wish_is_not_explained_by_a_fault_of_another_part():
    faults = FaultSet()
    faults.claim(claim(GPU4), 1, NOW)
    faults.claim(verdict(2), 2, NOW)
    assert standing(faults) == ["gpu:3 driver-hung", "gpu:4 uncontained-memory"]


@pytest.mark.parametrize("value", [3, 5, 6, 99])
def test_a_wish_for_more_than_a_reset_stands_beside_the_memory_fault(value):
    faults = FaultSet()
    faults.claim(claim(), 1, NOW)
    faults.claim(verdict(value), 2, NOW)
    assert len(faults.faults(NAMING)) == 2


def test_only_the_drivers_latest_verdict_stands():
    faults = FaultSet()
    for sequence, value in enumerate((2, 99, 1)):
        faults.claim(verdict(value), sequence, NOW)
    (fault,) = faults.faults(NAMING)
    assert (fault.name, fault.count) == ("firmware-halted", 1)


def found(verdict: Verdict, part=GPU3, check="memory"):
    if verdict is Verdict.FAULT:
        name, advice = FaultName.UNCONTAINED_MEMORY, Advice.RESET_GPU
        return Finding(check, part, verdict, name, "ecc:uncorrected", advice, Severity.FATAL)
    return Finding(check, part, verdict)


@pytest.mark.parametrize(
    ("rounds", "ends"),
    [
        ([[found(Verdict.OK)]] * PASSES, True),
        ([[found(Verdict.OK)]] * (PASSES - 1), False),
        ([[found(Verdict.UNKNOWN)]] * 10, False),
        ([[found(Verdict.OK, GPU4)]] * 10, False),
        ([[found(Verdict.OK, check="pci")]] * 10, False),
        ([[found(Verdict.OK)], [found(Verdict.FAULT)], [found(Verdict.OK)]], False),
        ([[]] * 10, False),
    ],
)
def test_a_level_ends_when_its_own_check_has_passed_often_enough(rounds, ends):
    faults = FaultSet()
    faults.judge([found(Verdict.FAULT)], NOW)
    for each in rounds:
        faults.judge(each, NOW)
    assert (not faults.levels) is ends


def test_what_a_check_said_of_the_host_ends_when_all_it_says_is_well():
    faults = FaultSet()
    faults.judge([found(Verdict.FAULT, HOST)], NOW)
    for _ in range(PASSES):
        faults.judge([found(Verdict.OK), found(Verdict.UNKNOWN, GPU4)], NOW)
    assert faults.levels
    for _ in range(PASSES):
        faults.judge([found(Verdict.OK), found(Verdict.OK, GPU4)], NOW)
    assert not faults.levels


def test_neither_a_boot_nor_a_reset_ends_what_a_check_reads_as_a_level():
    faults = FaultSet()
    faults.judge([found(Verdict.FAULT)], NOW)
    faults.new_boot()
    faults.clear(HOST)
    assert faults.levels


def test_a_flood_of_distinct_faults_is_counted_together_beyond_the_limit():
    faults = FaultSet()
    for index in range(CLAIM_LIMIT + 500):
        faults.claim(claim(Part(f"pci:0000:{index % 256:02x}:{index // 256:02x}")), index, NOW)
    assert len(faults.standing) <= CLAIM_LIMIT + 1
    assert sum(old.count for old in faults.standing.values()) == CLAIM_LIMIT + 500


def test_a_part_named_by_address_gets_its_index_and_keeps_its_count():
    faults = FaultSet()
    faults.claim(claim(Part("pci:0000:52:00")), 1, NOW)
    faults.claim(claim(Part("pci:0000:52:00/mig:1")), 2, NOW)
    faults.claim(claim(GPU3), 3, NOW)
    faults.rename(NAMING)
    assert {each.part: each.count for each in faults.faults(NAMING)} == {GPU3: 2, MIG: 1}


HUNG = Finding("memory", HOST, Verdict.FAULT, FaultName.DRIVER_HUNG, "child:hung", Advice.REBOOT)


@pytest.mark.parametrize(
    ("rounds", "stands"),
    [
        ([HUNG], False),
        ([HUNG, HUNG], True),
        ([HUNG, found(Verdict.OK), HUNG], False),
        ([HUNG, found(Verdict.UNKNOWN), HUNG], True),
    ],
)
def test_a_driver_that_stalls_once_is_not_hung(rounds, stands):
    faults = FaultSet()
    for minute, each in enumerate(rounds):
        faults.judge([each], NOW + timedelta(minutes=minute))
    assert bool(faults.faults(NAMING)) is stands
    assert faults.levels, "and it is looked at again"


def test_a_child_that_hung_is_not_the_drivers_word_whichever_check_asked():
    hangs = Finding(
        "recovery-action",
        HOST,
        Verdict.FAULT,
        FaultName.DRIVER_HUNG,
        "child:hung",
        Advice.REBOOT,
        Severity.FATAL,
    )
    faults = FaultSet()
    faults.judge([hangs], NOW)
    assert standing(faults) == []
    faults.judge([hangs], NOW + STRIKE_GAP)
    assert len(standing(faults)) == 1


HOT = Finding("thermal", GPU3, Verdict.FAULT, FaultName.THERMAL, "thermal:slowdown", Advice.HOLD)


@pytest.mark.parametrize(
    ("finding", "seconds", "stands"),
    [
        (HUNG, (0, 5, 10, 15, 20, 25), False),
        (HUNG, (0, 5, 10, 15, 20, 25, 30), True),
        (HOT, (0, 5, 30, 35, 55), False),
        (HOT, (0, 5, 30, 35, 60), True),
        (HOT, (0, 60, 120), True),
        (HOT, (0, -3_600, -3_595), True),  # the clock went back
        (found(Verdict.FAULT), (0,), True),
    ],
)
def test_strikes_of_rounds_that_follow_each_other_within_seconds_are_one(finding, seconds, stands):
    faults = FaultSet()
    for each in seconds:
        faults.judge([finding], NOW + timedelta(seconds=each))
    assert bool(faults.faults(NAMING)) is stands


def test_a_level_wanes_between_its_first_pass_and_its_last():
    sick = Finding("pci", GPU3, Verdict.FAULT, FaultName.GPU_LOST, "pci:all-ones", Advice.REBOOT)
    well = Finding("pci", GPU3, Verdict.OK)
    faults, seen = FaultSet(), []
    for finding in (sick, well, sick, *[well] * PASSES):
        faults.judge([finding], NOW)
        seen.append(faults.waning)
    pci, none = frozenset({"pci"}), frozenset[str]()
    assert seen == [none, pci, none, *[pci] * (PASSES - 1), none]
    assert standing(faults) == []
