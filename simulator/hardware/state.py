"""What is physically so in a machine, and how a step changes it. Pure: no files, no clock.

Every change returns the lines that the kernel prints about it. `now` is in seconds of any clock
that goes on over reboots.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from simulator.hardware.nature import NATURES, Ail, Cure, Nature, Symptoms


class InUse(Exception):
    """A reset that the driver refuses, since a process holds the GPU."""


class Gone(Exception):
    """A reset that cannot reach the GPU."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `nature` is what troubles it (empty: nothing); `struck` is since when."""

    index: int
    bdf: str
    uuid: str
    serial: str
    nature: str = ""
    struck: float = 0.0
    symptoms: Symptoms = field(default_factory=Symptoms)
    remapped_rows: int = 0
    returns_left: int | None = None
    resets: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """Something that time will do: a fault that passes, or one that comes back."""

    at: float
    gpu: int
    nature: str
    comes_back: bool = False


FIRST_PID = 20_000
"""Process ids below are the host's own."""


@dataclass(frozen=True, slots=True)
class Process:
    """The one process of a holder; `started` in seconds after the boot."""

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """A machine's truth. `holders` maps a holder (a pod's UID) to the GPUs that it has open, and
    `processes` to the process that has; `started` counts those that ever were. `ails` are of the
    machine as a whole."""

    gpus: tuple[Gpu, ...]
    boot_id: str
    booted: float
    boots: int = 1
    due: tuple[Due, ...] = ()
    holders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    processes: Mapping[str, Process] = field(default_factory=dict)
    started: int = 0
    ails: tuple[Ail, ...] = ()

    def on(self, index: int) -> tuple[Process, ...]:
        """The processes that have a GPU open."""
        holders = (each for each, held in self.holders.items() if index in held)
        return tuple(self.processes[each] for each in holders)


Lines = tuple[str, ...]
Change = tuple[Hardware, Lines]


def strike(hardware: Hardware, index: int, nature: Nature, now: float) -> Change:
    """Break a GPU in the way of `nature`."""
    gpu = hardware.gpus[index]
    left = nature.returns if gpu.returns_left is None else gpu.returns_left
    struck = replace(
        gpu, nature=nature.name, struck=now, symptoms=nature.symptoms, returns_left=left
    )
    changed = _with_gpu(hardware, struck)
    if Cure.TIME in nature.cures:
        changed = _with_due(changed, Due(now + nature.lasts, index, nature.name))
    return changed, _print(nature.lines, gpu, hardware)


def ail(hardware: Hardware, ail: Ail) -> Change:
    """Trouble the machine as a whole; nothing is printed."""
    return replace(hardware, ails=tuple(sorted({*hardware.ails, ail}))), ()


def hold(hardware: Hardware, holder: str, gpus: tuple[int, ...], now: float) -> Change:
    """A process of `holder` has opened these GPUs; none: it has ended."""
    others = {key: held for key, held in hardware.holders.items() if key != holder}
    processes = {key: each for key, each in hardware.processes.items() if key in others}
    if not gpus:
        return replace(hardware, holders=others, processes=processes), ()
    new = Process(FIRST_PID + hardware.started, now - hardware.booted)
    mine = hardware.processes.get(holder, new)
    return (
        replace(
            hardware,
            holders={**others, holder: gpus},
            processes={**processes, holder: mine},
            started=hardware.started + int(mine is new),
        ),
        (),
    )


def reset(hardware: Hardware, index: int, now: float) -> Change:
    """Reset one GPU; raise InUse or Gone where the driver would refuse."""
    gpu = hardware.gpus[index]
    if gpu.symptoms.lost:
        raise Gone(gpu.bdf)
    if any(index in held for held in hardware.holders.values()):
        raise InUse(gpu.bdf)
    counted = _with_gpu(hardware, replace(gpu, resets=gpu.resets + 1))
    return _apply(counted, index, Cure.RESET, now)


def boot(hardware: Hardware, boot_id: str, now: float) -> Change:
    """Start the machine anew: nothing holds a GPU, and what no boot heals shows again."""
    started = replace(hardware, boot_id=boot_id, booted=now, boots=hardware.boots + 1)
    started = replace(started, holders={}, processes={}, ails=())
    lines: Lines = ()
    for gpu in started.gpus:
        started, printed = _apply(started, gpu.index, Cure.BOOT, now)
        lines += printed
    return started, lines


def pass_time(hardware: Hardware, now: float) -> Change:
    """Do what is due by `now`."""
    lines: Lines = ()
    for due in [each for each in hardware.due if each.at <= now]:
        hardware = replace(hardware, due=tuple(each for each in hardware.due if each != due))
        nature = NATURES[due.nature]
        if due.comes_back:
            hardware, printed = strike(hardware, due.gpu, nature, now)
        elif hardware.gpus[due.gpu].nature == due.nature:
            printed = _print(nature.passed, hardware.gpus[due.gpu], hardware)
            hardware = _heal(hardware, hardware.gpus[due.gpu], nature, now)
        else:
            continue
        lines += printed
    return hardware, lines


def _apply(hardware: Hardware, index: int, cure: Cure, now: float) -> Change:
    gpu = hardware.gpus[index]
    if not gpu.nature:
        return hardware, ()
    nature = NATURES[gpu.nature]
    if cure in nature.cures:
        return _heal(hardware, gpu, nature, now), ()
    return hardware, _print(nature.again, gpu, hardware)


def _heal(hardware: Hardware, gpu: Gpu, nature: Nature, now: float) -> Hardware:
    rows = gpu.remapped_rows + int(gpu.symptoms.remap_pending)
    healed = replace(gpu, nature="", symptoms=Symptoms(), remapped_rows=rows)
    if not gpu.returns_left:
        return _with_gpu(hardware, healed)
    healed = replace(healed, returns_left=gpu.returns_left - 1)
    back = Due(now + nature.returns_after, gpu.index, nature.name, comes_back=True)
    return _with_due(_with_gpu(hardware, healed), back)


def _with_gpu(hardware: Hardware, gpu: Gpu) -> Hardware:
    gpus = tuple(gpu if each.index == gpu.index else each for each in hardware.gpus)
    return replace(hardware, gpus=gpus)


def _with_due(hardware: Hardware, due: Due) -> Hardware:
    return replace(hardware, due=(*hardware.due, due))


def _print(lines: Lines, gpu: Gpu, hardware: Hardware) -> Lines:
    """The driver names the process whose channel it was, where it knows of one."""
    pids = [each.pid for each in hardware.on(gpu.index)]
    process = f"pid={pids[0]}, name=python3" if pids else "pid='<unknown>', name=<unknown>"
    return tuple(line.replace("{bdf}", gpu.bdf).replace("{process}", process) for line in lines)


def to_fields(hardware: Hardware) -> dict[str, Any]:
    """As JSON has it."""
    return asdict(hardware)


def from_fields(fields: dict[str, Any]) -> Hardware:
    """Back from JSON."""
    gpus = tuple(
        Gpu(**{**each, "symptoms": Symptoms(**each["symptoms"])}) for each in fields["gpus"]
    )
    due = tuple(Due(**each) for each in fields["due"])
    holders = {holder: tuple(held) for holder, held in fields["holders"].items()}
    processes = {holder: Process(**each) for holder, each in fields["processes"].items()}
    ails = tuple(Ail(each) for each in fields["ails"])
    read = {"gpus": gpus, "due": due, "holders": holders, "processes": processes, "ails": ails}
    return Hardware(**{**fields, **read})
