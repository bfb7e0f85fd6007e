"""What a reading of the kernel log does to the faults of a node. Pure.

A reading either claims a fault on a part, or gives the driver's verdict on it (Xid 154, by value),
or moves nothing and is only counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fleet.fault import Advice, FaultName, Severity
from fleet.part import HOST, Part, parse_part
from probes.kernel_log.reading import Reading
from probes.parts import Naming

RECOVERY_ACTION_CHANGED = 154


@dataclass(frozen=True, slots=True)
class Claim:
    """The log says that `part` has `fault`.

    `sub` tells apart what one code may say of one part (NVLink unit, reason, status, the Xid that
    caused it). `verdict` marks the driver's own word on the part: the latest one stands alone.
    """

    part: Part
    fault: FaultName
    code: str
    advice: Advice
    severity: Severity
    sub: str = ""
    verdict: bool = False


def claim_fields(claim: Claim) -> dict[str, Any]:
    """A claim as the state directory keeps it."""
    return {
        "part": claim.part,
        "fault": claim.fault.value,
        "code": claim.code,
        "advice": claim.advice.value,
        "severity": claim.severity.value,
        "sub": claim.sub,
        "verdict": claim.verdict,
    }


def read_claim(fields: Mapping[str, Any]) -> Claim:
    """Read it back; raises KeyError, TypeError or ValueError for what is not one."""
    return Claim(
        part=parse_part(fields["part"]),
        fault=FaultName(fields["fault"]),
        code=str(fields["code"]),
        advice=Advice(fields["advice"]),
        severity=Severity(fields["severity"]),
        sub=str(fields["sub"]),
        verdict=bool(fields["verdict"]),
    )


@dataclass(frozen=True, slots=True)
class Cleared:
    """The driver says that nothing is to be done about `part` any more."""

    part: Part


@dataclass(frozen=True, slots=True)
class Counted:
    """Moves nothing: `fault` is `none` or `application`."""

    fault: str
    code: str
    part: Part = HOST


Evidence = Claim | Cleared | Counted

ADVICE: Mapping[str, Advice] = MappingProxyType(
    {
        "none": Advice.NONE,
        "hold": Advice.HOLD,
        "drain": Advice.DRAIN,
        "reset_gpu": Advice.RESET_GPU,
        "reboot": Advice.REBOOT,
        "replace": Advice.REPLACE,
    }
)
"""Action words of readings. Any other (`follow_recovery_action`) waits for the driver's verdict."""

RECOVERY: Mapping[int, tuple[FaultName, Advice]] = MappingProxyType(
    {
        1: (FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
        2: (FaultName.DRIVER_HUNG, Advice.REBOOT),
        3: (FaultName.NVLINK_ERROR, Advice.DRAIN),
        4: (FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
        5: (FaultName.FABRIC_NOT_READY, Advice.HAND_OFF),
        6: (FaultName.GPU_LOST, Advice.REBOOT),
        7: (FaultName.DRIVER_HUNG, Advice.REBOOT),
    }
)
"""What the driver wants, by value, never by label. 0 clears; one not listed is a hand-off."""

EXPLAINED_BY = (
    FaultName.MEMORY_EXHAUSTED,
    FaultName.UNCONTAINED_MEMORY,
    FaultName.CONTAINED_MEMORY,
    FaultName.NVLINK_ERROR,
    FaultName.FABRIC_NOT_READY,
)
"""Faults of a part that explain why its driver wants a reset or a reboot, worst first."""
EXPLAINABLE = frozenset({1, 2, 4, 7})


def weigh(reading: Reading, naming: Naming) -> Evidence:
    """What one reading says of one part of this node."""
    code = f"{reading.kind}:{reading.code}"
    if reading.kind == "xid" and reading.code == RECOVERY_ACTION_CHANGED:
        return _verdict(reading, naming, code)
    if reading.fault in ("none", FaultName.APPLICATION):
        return Counted(reading.fault, code, part_of(reading, naming))
    return Claim(
        part=part_of(reading, naming),
        fault=_fault_name(reading.fault),
        code=code,
        advice=ADVICE.get(reading.action, Advice.HOLD),
        severity=_severity(reading.sev),
        sub=_sub(reading),
    )


def driver_verdict(part: Part, value: int, code: str) -> Evidence:
    """The driver's recovery action, wherever it was read (Xid 154, nvidia-smi)."""
    if value == 0:
        return Cleared(part)
    unlisted = (FaultName.UNKNOWN_CODE, Advice.HAND_OFF)
    fault, advice = RECOVERY.get(value, unlisted)
    severity = Severity.FATAL if value in RECOVERY else Severity.DEGRADED
    return Claim(part, fault, code, advice, severity, sub=str(value), verdict=True)


def part_of(reading: Reading, naming: Naming) -> Part:
    """The part that a reading is about; the host where it names none."""
    try:
        return parse_part(_named(reading, naming))
    except ValueError:
        return HOST


def _named(reading: Reading, naming: Naming) -> Part:
    if reading.kind in ("efa", "mlx5", "net") and reading.dev:
        return Part(f"nic:{reading.dev}")
    if not reading.pci:
        return HOST
    if reading.kind != "xid":
        return naming.device(reading.pci)
    if reading.link is not None and reading.mig is None:
        return naming.link(reading.pci, reading.link)
    return naming.gpu(reading.pci, reading.mig)


def _verdict(reading: Reading, naming: Naming, code: str) -> Evidence:
    """A line that was cut before its new value neither clears nor accuses."""
    if reading.recovery is None:
        return Counted("none", code)
    return driver_verdict(part_of(reading, naming), reading.recovery, code)


def _sub(reading: Reading) -> str:
    detail = (reading.unit, reading.reason, reading.status, reading.link, reading.parent)
    return "" if not any(each is not None for each in detail) else "/".join(map(str, detail))


def _fault_name(text: str) -> FaultName:
    try:
        return FaultName(text)
    except ValueError:
        return FaultName.UNKNOWN_CODE


def _severity(text: str) -> Severity:
    try:
        return Severity(text)
    except ValueError:
        return Severity.UNKNOWN
