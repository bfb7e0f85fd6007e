"""Is the memory of every GPU sound, by NVML? Volatile errors, remapping, spare rows, repairs.

Lifetime counters (aggregate ECC, rows remapped so far) never clear and accuse nobody: they are
metrics. A pending remap is normal after a successful repair and wants a reset at leisure.
"""

from collections.abc import Iterator

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.gpus import Aspect, Seen, mute
from probes.checks.subject import Subject, fault
from probes.nvml.view import GpuView, Mute

RETIRED_PAGES = 63
"""Pages that a board before Ampere can retire; at this number there is no room for the next."""
CORRECTED_PER_MINUTE = 60_000.0
"""Corrected errors that a degrading GPU was seen to pass (17,657 a second) before its monitoring
stalled; sound ones stay below hundreds a minute."""

_RESET = (FaultName.UNCONTAINED_MEMORY, Advice.RESET_GPU, Severity.FATAL)
_LEISURE = (FaultName.CONTAINED_MEMORY, Advice.HOLD, Severity.DEGRADED)
_REPLACE = (FaultName.MEMORY_EXHAUSTED, Advice.REPLACE, Severity.FATAL)
FLAGS = {
    "ecc_uncorrected": ("ecc:uncorrected", *_RESET),
    "remap_failure": ("remap:failure", *_REPLACE),
    "remap_pending": ("remap:pending", *_LEISURE),
    "banks_exhausted": ("remap:banks-exhausted", *_REPLACE),
    "sram_threshold": ("sram:threshold", *_REPLACE),
    "unrepairable": ("memory:unrepairable", *_REPLACE),
    "retired_pending": ("retire:pending", *_LEISURE),
}
"""Values that must be 0, worst first, and what another number means."""


def judge(part: Part, gpu: GpuView, subject: Subject) -> Iterator[Seen]:
    """Every aspect of one GPU's memory."""
    for name in FLAGS:
        yield _flag(part, name, gpu.number(name))
    yield _repair(part, gpu)
    yield _retired(part, gpu)
    yield _corrected(part, gpu, subject)


def _flag(part: Part, name: str, said: int | Mute) -> Seen:
    if isinstance(said, Mute):
        return mute(Check.MEMORY, part, said, name)
    if said == 0:
        return Aspect.WELL
    return _complaint(part, *FLAGS[name], f"{name}={said}")


def _repair(part: Part, gpu: GpuView) -> Seen:
    """Blackwell repairs channels and cores at the next reset."""
    said = gpu.numbers("repair_pending", 2)
    if isinstance(said, Mute):
        return mute(Check.MEMORY, part, said, "repair_pending")
    if not any(said):
        return Aspect.WELL
    return _complaint(part, "repair:pending", *_LEISURE, f"repair_pending={said}")


def _retired(part: Part, gpu: GpuView) -> Seen:
    single, double = gpu.number("retired_sbe"), gpu.number("retired_dbe")
    if isinstance(single, Mute) and isinstance(double, Mute):
        return mute(Check.MEMORY, part, single, "retired pages")
    pages = sum(each for each in (single, double) if isinstance(each, int))
    if pages < RETIRED_PAGES:
        return Aspect.WELL
    return _complaint(part, "retire:full", *_REPLACE, f"{pages} pages retired")


def _corrected(part: Part, gpu: GpuView, subject: Subject) -> Seen:
    """By its rate alone: the count is of the time since the driver was loaded."""
    said = gpu.number("ecc_corrected")
    if isinstance(said, Mute):
        return mute(Check.MEMORY, part, said, "ecc_corrected")
    rise = subject.rise_above(("ecc_corrected", gpu.pci), said, CORRECTED_PER_MINUTE)
    if rise is None:
        return Aspect.ABSENT
    text = f"{rise.per_minute:.0f} corrected errors a minute"
    return _complaint(part, "ecc:corrected-storm", *_LEISURE, text)


def _complaint(
    part: Part, code: str, name: FaultName, advice: Advice, severity: Severity, said: str
) -> Finding:
    return fault(Check.MEMORY, part, name, code, advice, said, severity)
