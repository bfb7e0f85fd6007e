"""What a child that uses the GPUs of a simulated machine would print: from the truth, at once.

It is asked with the plan that the real one is asked with, and answers in the same lines. Sums of
products are numbers of its own here: what counts is who makes which.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from simulator.hardware.machine import Machine
from simulator.hardware.nvml import lines as nvml_lines
from simulator.hardware.root import MODEL
from simulator.hardware.state import Gpu

RIGHT, WRONG = 0x5EED0FA11, 0x5EED0FA12
BATCHES = 40
RATE, COPY_RATE = 560e12, 53e9
SLOWED = 10
PATTERNS = 6
LOOKS = 3
SIZE, TOTAL = 73_014_444_032, 85_520_809_984
LOADED = {"utilization": 100, "sm_clock": 1_410, "power": 690_000}
Line = dict[str, Any]


def compute_child(machine: Machine, arguments: Sequence[str]) -> int:
    """Print what an examination as planned brings; 1 where there is no plan."""
    try:
        plan = json.loads(arguments[0])
        asked, witnesses = list(plan["gpus"]), list(plan["witnesses"])
    except (IndexError, KeyError, TypeError, ValueError):
        sys.stderr.write("not a plan\n")
        return 1
    for line in lines(machine, asked, witnesses):
        sys.stdout.write(json.dumps(line) + "\n")
    return 0


BUS_RATE = 460.0
_HEAD = """\
# nThread 1 nGpus {count} minBytes {size} maxBytes {size} step: 1048576(bytes) warmup iters: 5
#
# Using devices"""
_RANK = "#  Rank {index:2} Group  0 Pid  12345 on     node device {index:2} [{bdf}] {model}"
_ROW = " {size}    1073741824     float     sum      -1   {cells}   {cells}"
REDUCED_SIZE = 4_294_967_296


def all_reduce_perf(machine: Machine, arguments: Sequence[str]) -> int:
    """The table of the NCCL tests, for all GPUs; as slow as the slowest of them."""
    del arguments
    gpus = machine.read().gpus
    if any(each.symptoms.lost for each in gpus):
        sys.stderr.write("Test CUDA failure common.cu:1030 'no CUDA-capable device is detected'\n")
        return 2
    bus = BUS_RATE / SLOWED if any(each.symptoms.slow for each in gpus) else BUS_RATE
    cells = f"16120.  {bus / 1.75:.2f}  {bus:.2f}      0"
    said = [_HEAD.format(count=len(gpus), size=REDUCED_SIZE)]
    said += [_RANK.format(index=each.index, bdf=each.bdf, model=MODEL) for each in gpus]
    said += [_ROW.format(size=REDUCED_SIZE, cells=cells), "# Out of bounds values : 0 OK"]
    sys.stdout.write("\n".join(said) + "\n")
    return 0


def lines(machine: Machine, asked: Sequence[str], witnesses: Sequence[str]) -> Iterator[Line]:
    """Everything, in the order in which it becomes known; a GPU off the bus makes nothing."""
    gpus = {each.bdf: each for each in machine.read().gpus if not each.symptoms.lost}
    mine = [gpus[each] for each in asked if each in gpus]
    others = [gpus[each] for each in witnesses if each in gpus]
    yield {"begun": "torch"}
    yield from ({"device": each.bdf, "model": MODEL} for each in (*mine, *others))
    yield {"phase": "products"}
    yield {"expected": RIGHT}
    yield from (_products(each) for each in (*mine, *others))
    for _ in range(LOOKS):
        yield {"loaded": "".join(json.dumps(each) + "\n" for each in _under_load(machine))}
    yield {"phase": "copies"}
    for gpu in mine:
        yield {"copies": gpu.bdf, "inward": COPY_RATE, "outward": COPY_RATE, "bad": 0}
    yield {"phase": "memory"}
    for gpu in mine:
        numbers = {"size": SIZE, "total": TOTAL, "patterns": PATTERNS, "of": PATTERNS}
        yield {"memory": gpu.bdf, **numbers, "held": 0, "bad": 0, "first": 0, "bits": 0}
    yield {"end": True}


def _products(gpu: Gpu) -> Line:
    wrong = 1 if gpu.symptoms.wrong_results else 0
    sums = [[RIGHT, BATCHES - wrong], *([[WRONG, wrong]] if wrong else [])]
    rate = RATE / SLOWED if gpu.symptoms.slow else RATE
    made = {name: {"sums": sums, "rate": rate} for name in ("half", "single")}
    return {"products": gpu.bdf, "made": made}


def _under_load(machine: Machine) -> Iterator[Line]:
    for line in nvml_lines(machine):
        yield {**line, "values": {**line["values"], **LOADED}} if "values" in line else line
