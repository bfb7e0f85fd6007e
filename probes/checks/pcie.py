"""Is the PCIe link of every GPU as wide as it can be, and free of errors?

Width counts at any time. Speed is not looked at: idle GPUs drop it. Replays are normal in small
numbers, so only what rises faster than the link's own error budget complains.
"""

from collections.abc import Iterator

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.subject import Subject, fault
from probes.nvml.view import GpuView, Mute

REPLAYS_PER_MINUTE = 31.0
"""What the bit error rate that PCIe allows makes of a Gen5 link of sixteen lanes."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU."""
    return each_gpu(Check.PCIE, subject, lambda part, gpu: judge(part, gpu, subject))


def judge(part: Part, gpu: GpuView, subject: Subject) -> Iterator[Seen]:
    """Every aspect of one GPU's link."""
    yield _width(part, gpu.number("width"), gpu.number("width_limit"))
    for name, limit, code, severity in (
        ("pcie_replays", REPLAYS_PER_MINUTE, "pcie:replays", Severity.DEGRADED),
        ("pcie_fatal", 0.0, "pcie:fatal", Severity.FATAL),
    ):
        said = gpu.number(name)
        if isinstance(said, Mute):
            yield mute(Check.PCIE, part, said, name)
            continue
        rise = subject.rise_above((name, gpu.pci), said, limit)
        yield _complaint(part, code, f"{name} {rise}", severity) if rise else Aspect.WELL


def _width(part: Part, now: int | Mute, most: int | Mute) -> Seen:
    if isinstance(now, Mute):
        return mute(Check.PCIE, part, now, "width")
    if isinstance(most, Mute):
        return mute(Check.PCIE, part, most, "width_limit")
    if now >= most:
        return Aspect.WELL
    return _complaint(part, "pcie:width", f"{now} of {most} lanes", Severity.DEGRADED)


def _complaint(part: Part, code: str, said: str, severity: Severity) -> Finding:
    advice = Advice.DRAIN if severity is Severity.FATAL else Advice.HOLD
    return fault(Check.PCIE, part, FaultName.PCIE_DEGRADED, code, advice, said, severity)
