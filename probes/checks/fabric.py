"""Has every GPU joined its NVSwitch fabric, and does the fabric call it healthy?

The summary is preferred where the driver gives one: in the mask a field of 2 means "no trouble",
so that a mask that is not 0 may be healthy. A GPU without a fabric says so, and is well.
"""

from collections.abc import Iterator

from fleet.check import Check
from fleet.fault import Advice, FaultName
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.subject import Subject, fault, unknown
from probes.nvml.view import NOTHING, GpuView, Mute, whole

NONE, NOT_STARTED, IN_PROGRESS, COMPLETED = range(4)
HEALTHY, UNHEALTHY, LIMITED = 1, 2, 3
TROUBLES = (
    ("degraded-bandwidth", 0),
    ("route-recovery", 2),
    ("route-unhealthy", 4),
    ("access-timeout-recovery", 6),
)
"""Two bits each in the mask, from this bit on: 1 is trouble, 2 is none, 0 not supported."""
_CONFIGURATION = (8, 0xF)
_C2C_UP = 1


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU: the NVSwitch fabric, and the C2C links of Grace boards."""
    return each_gpu(Check.FABRIC, subject, judge)


def judge(part: Part, gpu: GpuView) -> Iterator[Seen]:
    """Every aspect of one GPU's fabric."""
    said = gpu.numbers("fabric", 4)
    if isinstance(said, Mute):
        yield mute(Check.FABRIC, part, said, "fabric")
    else:
        yield _fabric(part, *said)
    for number, link in enumerate(gpu.c2c):
        yield _c2c(part, number, whole(link.get("status", NOTHING)))


def troubles(mask: int) -> tuple[str, ...]:
    """What the health mask complains of."""
    found = [name for name, shift in TROUBLES if mask >> shift & 0x3 == 1]
    shift, width = _CONFIGURATION
    wrong = mask >> shift & width
    return (*found, f"configuration-{wrong}") if wrong > 1 else tuple(found)


def _fabric(part: Part, state: int, status: int, mask: int, summary: int) -> Seen:
    if state == NONE:
        return Aspect.WELL
    if state == IN_PROGRESS:
        return unknown(Check.FABRIC, part, "fabric:in-progress", "still joining its fabric")
    if state != COMPLETED or status:
        word = "not-started" if state == NOT_STARTED else "failed"
        return _complaint(part, word, f"state {state}, status {status}")
    if summary == HEALTHY or (not summary and not troubles(mask)):
        return Aspect.WELL
    word = {UNHEALTHY: "unhealthy", LIMITED: "limited-capacity"}.get(summary, "unhealthy")
    return _complaint(part, word, ", ".join(troubles(mask)) or f"summary {summary}")


def _c2c(part: Part, number: int, said: int | Mute) -> Seen:
    if isinstance(said, Mute):
        return mute(Check.FABRIC, part, said, f"C2C link {number}")
    return Aspect.WELL if said == _C2C_UP else _complaint(part, "c2c-down", f"C2C link {number}")


def _complaint(part: Part, word: str, said: str) -> Finding:
    name = FaultName.FABRIC_NOT_READY
    return fault(Check.FABRIC, part, name, f"fabric:{word}", Advice.REBOOT, said)
