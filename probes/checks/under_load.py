"""Clocks and the link to the host, as NVML told them while a GPU worked. Pure.

A GPU at rest lowers both on purpose, and one that is slowed down may lower its link with its clock.
So a slow link is a fault only where NVML told, several times, that nothing else explains it; what
it did not tell leaves it unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks.subject import fault, unknown
from probes.nvml.view import GpuView, Mute, View

LEAST_PEERS = 3
"""GPUs of a kind from which their median says anything."""
LEAST_CLOCK = 0.5
"""Of the highest clock: the power limit takes a third of it at full load, and never half."""
BUSY = 50
"""Per cent of use from which clocks and links are those of work."""
LEAST_LOOKS = 2
"""At work; a single one may have met a change of clock or link."""
IDLE = 0x01
"""Reason of a low clock: nothing runs."""
SLOWED = 0x08 | 0x40 | 0x80
"""Reasons of a low clock that are the hardware's own: slowdown, heat, power brake. A power limit or
a locked clock is somebody's choice, and changes no link.
"""
WORKING_STATE = 2
"""Performance states up to this one are for work; in those above it the link is lowered, too."""
LOWEST_STATE = 15
"""Above it the driver says that it does not know."""


def at_work(looks: Iterable[View], pci: str) -> list[GpuView]:
    """One GPU, each time it was seen at work."""
    seen = [gpu for view in looks for gpu in view.gpus if gpu.pci == pci]
    return [each for each in seen if _told(each, "utilization") >= BUSY]


def under_load(looks: Sequence[GpuView], like: Sequence[int], part: Part) -> Iterator[Finding]:
    """Of several looks at work; `like` are the best clocks of the GPUs of its kind."""
    if len(looks) < LEAST_LOOKS:
        return
    yield from _link(looks, part)
    clock, limit = best_clock(looks), _best(looks, "sm_clock_limit")
    if clock is None or clock >= LEAST_CLOCK * limit:
        return
    slowed = all(_told(each, "clock_events") & SLOWED for each in looks)
    if slowed or (len(like) >= LEAST_PEERS and clock < LEAST_CLOCK * median(like)):
        said = f"{clock} of {limit} MHz under load"
        name, code = FaultName.SLOW, "compute:clock"
        yield fault(Check.COMPUTE, part, name, code, Advice.HOLD, said, Severity.DEGRADED)


def best_clock(looks: Sequence[GpuView]) -> int | None:
    """The highest, None where none was told."""
    told = [each for each in looks if isinstance(each.number("sm_clock"), int)]
    return _best(told, "sm_clock") if told else None


def explained(look: GpuView) -> str:
    """Why a link may be slow although nothing is wrong with it; empty where NVML told of nothing.

    A value that this board does not have explains nothing; one that could not be read might.
    """
    state, events = look.number("performance_state"), look.number("clock_events")
    if isinstance(state, int) and WORKING_STATE < state <= LOWEST_STATE:
        return f"performance state {state}"
    if isinstance(events, int) and events & (IDLE | SLOWED):
        return "its clock is that of a GPU at rest" if events & IDLE else "slowed by heat or supply"
    told = isinstance(events, int) or (isinstance(state, int) and state <= WORKING_STATE)
    mute = any(isinstance(each, Mute) and not each.absent for each in (state, events))
    return "" if told and not mute else "NVML does not tell why"


def _link(looks: Sequence[GpuView], part: Part) -> Iterator[Finding]:
    """Its generation at its best, against the most that GPU and slot have in common."""
    linked = [each for each in looks if isinstance(each.number("generation"), int)]
    best, most = _best(linked, "generation"), _best(looks, "generation_limit")
    if not linked or best >= most:
        return
    said = f"generation {best} of {most} under load{_of_gpu(looks)}"
    reasons = [explained(each) for each in linked]
    if reasons.count("") >= LEAST_LOOKS:
        name, code = FaultName.PCIE_DEGRADED, "pcie:generation"
        yield fault(Check.COMPUTE, part, name, code, Advice.HOLD, said, Severity.DEGRADED)
    else:
        why = next(filter(None, reasons), "seen too seldom")
        yield unknown(Check.COMPUTE, part, "pcie:generation-explained", f"{said}: {why}")


def _of_gpu(looks: Sequence[GpuView]) -> str:
    """What the GPU itself could do: where that is more, its slot sets the limit."""
    own = _best(looks, "gpu_generation_limit")
    return f", the GPU itself has {own}" if own > _best(looks, "generation_limit") else ""


def _best(looks: Sequence[GpuView], name: str) -> int:
    return max((_told(each, name) for each in looks), default=0)


def _told(gpu: GpuView, name: str) -> int:
    """A number, 0 where NVML does not tell it."""
    said = gpu.number(name)
    return said if isinstance(said, int) else 0
