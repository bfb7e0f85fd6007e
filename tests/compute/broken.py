"""Devices that break on purpose, and what the production judge says of a node of them."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy

from fleet.finding import Finding, Verdict
from fleet.part import Part
from probes.checks.compute_verdicts import judge
from probes.compute import view
from probes.compute.examine import Sizes, examine
from probes.compute.load import Watcher
from probes.compute.numpy_backend import NumpyDevice
from probes.compute.products import Shape

SMALL = Shape(24, 16, 40)
SIZES = Sizes(shape=SMALL, tile=1 << 9, carry=1 << 8, load=0.0, witness=0.0)
MEMORY = 1 << 18
BITS = 1 << 63


@dataclass(slots=True)
class Device(NumpyDevice):
    """Product number `spoilt` (of all) comes out with a bit of one entry flipped; every one if
    `always`. A bit of one word of memory is stuck at one. `slower` by that factor.
    """

    bytes_total: int = MEMORY
    spoilt: int = -1
    always: bool = False
    entry: tuple[int, int] = (0, 0)
    bit: int = 20
    stuck: tuple[int, int] = (-1, 0)
    slower: float = 1.0
    breaks: str = ""
    made: int = 0
    clock: float = 0.0

    def add_product(self, out, left, right, sign):
        if self.breaks:
            raise RuntimeError(self.breaks)
        NumpyDevice.add_product(self, out, left, right, sign)
        if self.made == self.spoilt or self.always:
            out.view(numpy.uint32)[self.entry] ^= numpy.uint32(1 << self.bit)
        self.made += 1

    def store(self, block, start, values):
        NumpyDevice.store(self, block, start, values)
        word, bit = self.stuck
        if start <= word < start + len(values):
            block[word] |= (1 << bit) - (BITS * 2 if bit == 63 else 0)

    def mark(self):
        self.clock += self.slower
        return self.clock


def node(*devices: NumpyDevice) -> list[NumpyDevice]:
    """Devices with addresses of their own."""
    for index, each in enumerate(devices):
        each.pci = address(index)
    return list(devices)


def address(index: int) -> str:
    return f"0000:{0x50 + index:02x}:00"


def exam_of(
    devices: Sequence[NumpyDevice],
    witnesses: Sequence[NumpyDevice] = (),
    clock: Callable[[], float] = time.monotonic,
    seconds: float = 60.0,
    seed: int = 0,
) -> view.Exam:
    sizes = replace(SIZES, shape=replace(SMALL, seed=seed))
    lines = examine(
        devices, witnesses, NumpyDevice(), Watcher((), {}), clock, clock() + seconds, sizes
    )
    return view.read("\n".join(json.dumps(each) for each in lines))


def judged(
    devices: Sequence[NumpyDevice], *more: NumpyDevice, baselines=None, seed: int = 0
) -> list[Finding]:
    parts = {each.pci: Part(f"gpu:{index}") for index, each in enumerate(devices)}
    return [*judge(exam_of(devices, more, seed=seed), parts, baselines or {})]


def complaints(findings: Sequence[Finding]) -> set[tuple[str, str, str]]:
    return {
        (each.part, each.fault or each.verdict.value, each.code)
        for each in findings
        if each.verdict is not Verdict.OK
    }
