"""Is a GPU slowed down by heat or by its power supply, and can its power be read?

One look at the slowdown bits means nothing, so the time counters are compared with the time that
passed. What software does at full load (power cap, software thermal) is normal and not looked at.
The margin is a distance to the slowdown: absolute limits differ from board to board.
"""

from collections.abc import Iterator

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.subject import Subject, fault
from probes.nvml.view import GpuView, Mute

SLOWED_SHARE = 0.01
"""Share of the time; a GPU in a room that is cool enough spends none of it slowed by hardware."""
SLOWDOWNS = {
    "hw_thermal_ns": (FaultName.THERMAL, "thermal:hardware-slowdown"),
    "power_brake_ns": (FaultName.POWER, "power:brake"),
}
MOST_MILLIWATTS = 3_000_000
"""No board takes more: above it the reading is none."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU."""
    return each_gpu(Check.THERMAL, subject, lambda part, gpu: judge(part, gpu, subject))


def judge(part: Part, gpu: GpuView, subject: Subject) -> Iterator[Seen]:
    """Every aspect of one GPU's heat and power."""
    yield _margin(part, gpu.number("margin"))
    for name in SLOWDOWNS:
        yield _slowed(part, gpu, name, subject)
    yield _power(part, gpu.number("power"))


def _margin(part: Part, said: int | Mute) -> Seen:
    if isinstance(said, Mute):
        return mute(Check.THERMAL, part, said, "margin")
    if said > 0:
        return Aspect.WELL
    text = f"{-said} degrees past its slowdown temperature"
    return _complaint(part, FaultName.THERMAL, "thermal:no-margin", text)


def _slowed(part: Part, gpu: GpuView, name: str, subject: Subject) -> Seen:
    said = gpu.number(name)
    if isinstance(said, Mute):
        return mute(Check.THERMAL, part, said, name)
    rise = subject.rise((name, gpu.pci), said)
    if rise is None or rise.amount / 1e9 <= rise.seconds * SLOWED_SHARE:
        return Aspect.WELL
    fault_name, code = SLOWDOWNS[name]
    text = f"slowed for {rise.amount / 1e9:.1f} of {rise.seconds:.0f} s"
    return _complaint(part, fault_name, code, text)


def _power(part: Part, said: int | Mute) -> Seen:
    """Power that cannot be read may be the first sign of a dying board."""
    if isinstance(said, Mute):
        return mute(Check.THERMAL, part, said, "power")
    if 0 < said < MOST_MILLIWATTS:
        return Aspect.WELL
    return _complaint(part, FaultName.POWER, "power:unreadable", f"power reads {said} mW")


def _complaint(part: Part, name: FaultName, code: str, said: str) -> Finding:
    return fault(Check.THERMAL, part, name, code, Advice.HOLD, said, Severity.DEGRADED)
