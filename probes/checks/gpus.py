"""What checks of NVML have in common: go through the GPUs, and sum up what was seen of each.

A value may be well, a fault, untold, or not there at all. A GPU of which no value is there is
unknown, one with a well value and no other complaint is ok.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.refusals import refused, unusable
from probes.checks.subject import Subject, ok, unknown
from probes.nvml.view import GpuView, Mute


class Aspect(Enum):
    """One value of a GPU that is no complaint: it is well, or this board or driver lacks it."""

    WELL = "well"
    ABSENT = "absent"


Seen = Aspect | Finding
Judge = Callable[[Part, GpuView], Iterable[Seen]]


def each_gpu(check: str, subject: Subject, judge: Judge) -> tuple[Finding, ...]:
    """Findings of every GPU that NVML lists, and of what kept it from telling.

    None where there is no NVML library: a check that says nothing proves nothing.
    """
    seen = subject.nvml()
    if seen.missing:
        return ()
    found = list(unusable(check, seen))
    for gpu in seen.gpus:
        if gpu.handle is not None or not gpu.pci:
            said = f"GPU {gpu.index} of NVML cannot be asked"
            found.append(unknown(check, HOST, "nvml:no-handle", said))
        else:
            part = subject.naming.gpu(gpu.pci)
            found += summed(check, part, judge(part, gpu))
    return tuple(found)


def summed(check: str, part: Part, aspects: Iterable[Seen]) -> list[Finding]:
    """The complaints; ok where there are none; unknown where nothing could be judged."""
    seen = list(aspects)
    complaints = [each for each in seen if isinstance(each, Finding)]
    if complaints:
        return complaints
    if Aspect.WELL in seen:
        return [ok(check, part)]
    return [unknown(check, part, "nvml:not-supported", "this board or driver tells none of it")]


def mute(check: str, part: Part, said: Mute, what: str) -> Seen:
    """A value that NVML did not give: absent, or what its return code means."""
    return Aspect.ABSENT if said.absent else refused(check, part, said, what)
