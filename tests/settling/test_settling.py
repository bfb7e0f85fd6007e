"""What may still settle is unknown, neither well nor sick; what is unambiguous is never delayed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.finding import Finding, Verdict
from fleet.part import HOST, Part
from policies.document import default_policy
from probes.settling import GRACE, LONGEST, Upset, Why, left_of, settled, settling

GPU3, LINK, OTHER, NIC = Part("gpu:3"), Part("nvlink:3/7"), Part("gpu:4"), Part("nic:mlx5_0")
NOW = 10_000.0
ROWS = [(check, why, limit) for check, graces in GRACE.items() for why, limit in graces.items()]
SLOW = {
    Check.NVLINK: (LINK, FaultName.NVLINK_ERROR, "nvlink:down"),
    Check.FABRIC: (GPU3, FaultName.FABRIC_NOT_READY, "fabric:not-started"),
    Check.DRIVER: (HOST, FaultName.FABRIC_NOT_READY, "fabric:imex-gone"),
    Check.PRESENCE: (GPU3, FaultName.GPU_LOST, "presence:not-in-driver"),
    Check.ADAPTERS: (NIC, FaultName.NIC_DEGRADED, "adapters:down"),
}
"""By check, an answer of it that settles."""


def sick(check, part, name, code):
    return Finding(check, part, Verdict.FAULT, name, code, Advice.REBOOT, evidence="seen")


def well(check, part, code=""):
    return Finding(check, part, Verdict.OK, code=code)


def said(finding, upsets, now=NOW):
    (judged,) = settled(finding.check, (finding,), upsets, now)
    return judged


def test_every_check_with_a_grace_has_its_row():
    assert set(SLOW) == set(GRACE)


@pytest.mark.parametrize(("check", "why", "limit"), ROWS)
def test_within_the_grace_it_is_unknown_with_the_reason_and_just_outside_it_is_judged(
    check, why, limit
):
    part, name, code = SLOW[check]
    fault = sick(check, part, name, code)
    for age in (0.0, limit / 2, limit - 1.0):
        judged = said(fault, [Upset(why, NOW - age)])
        assert (judged.verdict, judged.fault, judged.code) == (
            *(Verdict.UNKNOWN, None, f"{check}:settling"),
        )
        assert judged.evidence == f"seen; {age:.0f} s after {why}"
    for age in (limit, limit + 1.0):
        assert said(fault, [Upset(why, NOW - age)]) == fault
    assert said(fault, []) == fault


@pytest.mark.parametrize(
    ("check", "code"),
    [
        *((Check.NVLINK, ""), (Check.FABRIC, ""), (Check.ADAPTERS, "")),
        (Check.DRIVER, "fabric:daemon-runs"),
    ],
)
def test_nothing_that_settles_is_called_well_within_the_grace(check, code):
    for why, limit in GRACE[check].items():
        finding = well(check, SLOW[check][0], code)
        assert said(finding, [Upset(why, NOW - limit + 1.0)]).verdict is Verdict.UNKNOWN
        assert said(finding, [Upset(why, NOW - limit)]) == finding


UNAMBIGUOUS = [
    sick(Check.PCI, GPU3, FaultName.GPU_LOST, "pci:all-ones"),
    sick(Check.PRESENCE, GPU3, FaultName.GPU_LOST, "presence:off-bus"),
    sick(Check.PRESENCE, HOST, FaultName.GPU_LOST, "presence:missing"),
    sick(Check.RECOVERY_ACTION, GPU3, FaultName.NVLINK_ERROR, "recovery-action:3"),
    sick(Check.RECOVERY_ACTION, GPU3, FaultName.FABRIC_NOT_READY, "recovery-action:5"),
    sick(Check.MEMORY, GPU3, FaultName.UNCONTAINED_MEMORY, "ecc:uncorrected"),
    sick(Check.KERNEL_LOG, LINK, FaultName.NVLINK_ERROR, "xid:74"),
    sick(Check.NVLINK, HOST, FaultName.DRIVER_HUNG, "child:hung"),
    sick(Check.NVLINK, GPU3, FaultName.FIRMWARE_HALTED, "nvml:reset-required"),
    sick(Check.FABRIC, GPU3, FaultName.GPU_LOST, "nvml:gpu-lost"),
    sick(Check.ADAPTERS, HOST, FaultName.DRIVER_HUNG, "child:hung"),
    sick(Check.ADAPTERS, NIC, FaultName.NIC_DEGRADED, "efa:no-completion"),
    sick(Check.DRIVER, HOST, FaultName.DRIVER_HUNG, "driver:stuck-thread"),
    sick(Check.DRIVER, HOST, FaultName.CONFIG_MISMATCH, "driver:versions"),
    sick(Check.PCIE, GPU3, FaultName.PCIE_DEGRADED, "pcie:fatal"),
    sick(Check.THERMAL, GPU3, FaultName.POWER, "power:brake"),
]
ALL_AT_ONCE = [Upset(why, NOW) for why in Why]


@pytest.mark.parametrize("finding", UNAMBIGUOUS, ids=lambda each: f"{each.check} {each.code}")
def test_what_is_unambiguous_stands_at_once(finding):
    assert said(finding, ALL_AT_ONCE) == finding


@pytest.mark.parametrize(
    "finding", [well(Check.PRESENCE, GPU3), well(Check.DRIVER, HOST), well(Check.MEMORY, GPU3)]
)
def test_what_does_not_settle_is_well_at_once(finding):
    assert said(finding, ALL_AT_ONCE) == finding


def test_what_nobody_could_tell_keeps_its_own_reason():
    mute = Finding(Check.NVLINK, LINK, Verdict.UNKNOWN, code="nvml:999")
    assert said(mute, ALL_AT_ONCE) == mute


@pytest.mark.parametrize(
    ("upset", "part", "waits"),
    [
        (GPU3, GPU3, True),
        (GPU3, LINK, True),
        (LINK, GPU3, True),
        (GPU3, OTHER, False),
        (HOST, OTHER, True),
        (GPU3, HOST, True),
    ],
)
def test_a_reset_of_one_gpu_disturbs_that_one_and_its_links(upset, part, waits):
    found = settling(Check.NVLINK, part, [Upset(Why.RESET, NOW, upset)], NOW)
    assert (found is not None) is waits


def test_of_several_disturbances_the_one_that_lasts_longest_is_named():
    upsets = [Upset(Why.MIG, NOW - 10), Upset(Why.BOOT, NOW - 200), Upset(Why.RESET, NOW - 100)]
    assert settling(Check.NVLINK, LINK, upsets, NOW) == upsets[0]
    assert settling(Check.NVLINK, LINK, upsets, NOW + 60) == upsets[0]
    assert settling(Check.NVLINK, LINK, [upsets[1], upsets[2]], NOW + 15) == upsets[1]


@given(st.sampled_from(ROWS), st.integers(-1_000_000, 1_000_000))
def test_no_grace_is_longer_than_its_limit_whatever_the_clock_does(row, age):
    check, why, limit = row
    left = left_of(check, HOST, Upset(why, NOW - age), NOW)
    assert 0.0 <= left <= limit <= LONGEST
    assert (left > 0.0) is (0.0 <= age < limit)


def test_a_verify_of_the_shipped_policy_lets_a_node_settle_for_as_long_as_its_checks_do():
    for name, terms in default_policy().faults.items():
        for check in terms.verify.checks:
            reset = GRACE.get(check, {}).get(Why.RESET, 0.0)
            boot = GRACE.get(check, {}).get(Why.BOOT, 0.0)
            needed = boot if check != Check.DRIVER else 0.0
            assert terms.verify.settle.total_seconds() >= max(reset, needed), (name, check)
