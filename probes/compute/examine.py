"""One examination of some devices, step by step, told line by line as it goes.

A line is told as soon as it is known, so that what was learnt before a hang is not lost; `phase`
tells what comes next. Nothing here judges.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from probes.compute.backend import Device, OutOfMemory
from probes.compute.load import Tallies, Watcher, keep_busy
from probes.compute.patterns import TILE_WORDS, examine_memory
from probes.compute.products import Shape, expected_sum

LOAD_SECONDS = 30.0
"""Of full load, where there is time for it: long enough to be warm."""
WITNESS_SECONDS = 1.0
LOAD_SHARE = 0.4
"""Of all time, at most."""
CARRY_WORDS, CARRY_TIMES = 1 << 26, 5
"""512 MiB, copied five times each way: long enough to be measured, short enough to be nothing."""
ERROR_LIMIT = 200

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large everything is; tests take less."""

    shape: Shape = field(default_factory=Shape)
    tile: int = TILE_WORDS
    carry: int = CARRY_WORDS
    load: float = LOAD_SECONDS
    witness: float = WITNESS_SECONDS


@dataclass(slots=True)
class _Exam:
    """The devices still standing, and lines of those that fell."""

    devices: list[Device]
    fallen: list[Line] = field(default_factory=list)

    def fail(self, device: Device, problem: Exception) -> None:
        """It is asked nothing more; short memory is no error of its own."""
        self.devices = [each for each in self.devices if each is not device]
        short = isinstance(problem, OutOfMemory)
        said = f"{type(problem).__name__}: {problem}"[:ERROR_LIMIT]
        self.fallen.append({"error": device.pci, "short": short, "said": said})

    def told(self) -> Iterator[Line]:
        """What fell since the last time."""
        yield from self.fallen
        self.fallen = []


def examine(
    devices: Sequence[Device],
    witnesses: Sequence[Device],
    host: Device,
    watcher: Watcher,
    clock: Callable[[], float],
    until: float,
    sizes: Sizes,
) -> Iterator[Line]:
    """Products, copies and memory of `devices`; of `witnesses` products only, for a moment.

    `until` is in seconds of `clock`.
    """
    exam = _Exam([*devices])
    yield from ({"device": each.pci, "model": each.model} for each in (*devices, *witnesses))
    yield {"phase": "products"}
    yield {"expected": expected_sum(host, sizes.shape)}
    load = min(sizes.load, LOAD_SHARE * (until - clock()))
    over = clock() + load
    made = keep_busy(devices, sizes.shape, watcher, lambda: over - clock(), exam.fail)
    yield from map(_products, made.items())
    yield from ({"loaded": each} for each in [*watcher.outputs])
    over = clock() + sizes.witness
    quiet = Watcher((), {})
    seen = keep_busy(witnesses, sizes.shape, quiet, lambda: over - clock(), exam.fail)
    yield from map(_products, seen.items())
    yield from exam.told()
    yield {"phase": "copies"}
    for device in list(exam.devices):
        yield from _copies(exam, device, sizes.carry)
    yield {"phase": "memory"}
    for number, device in enumerate(list(exam.devices)):
        share = (until - clock()) / (len(devices) - number)
        yield from _memory(exam, device, clock, clock() + share, sizes.tile)
    yield {"end": True}


def _products(made: tuple[str, Tallies]) -> Line:
    pci, tallies = made
    return {
        "products": pci,
        "made": {
            arithmetic.value: {"sums": list(tally.sums.items()), "rate": tally.rate}
            for arithmetic, tally in tallies.items()
        },
    }


def _copies(exam: _Exam, device: Device, words: int) -> Iterator[Line]:
    try:
        inward, outward, bad = device.carry(words, CARRY_TIMES)
    except (RuntimeError, OutOfMemory) as problem:
        exam.fail(device, problem)
        yield from exam.told()
        return
    yield {"copies": device.pci, "inward": inward, "outward": outward, "bad": bad}


def _memory(
    exam: _Exam, device: Device, clock: Callable[[], float], until: float, tile: int
) -> Iterator[Line]:
    try:
        tested = examine_memory(device, lambda: until - clock(), tile)
    except (RuntimeError, OutOfMemory) as problem:
        exam.fail(device, problem)
        yield from exam.told()
        return
    yield {"memory": device.pci, **asdict(tested)}
