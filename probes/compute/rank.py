"""One rank of an all-reduce, within a node or between nodes: `python -m probes.compute.rank PLAN`.

It prints one line of JSON when it has met the others and one an addition; the first addition is
slow by nature, and whoever reads leaves it out. Whole numbers make every wrong bit show.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from probes.compute.backend import Device
from probes.compute.group import Group, NcclGroup, TcpGroup, contribution, expected
from probes.driver_library import CUDA, preload

TORCH, NUMPY = "torch", "numpy"
WORDS = 1 << 28
"""2 GiB a rank: large enough that a link, and not its latency, is what is measured."""
TIMES = 6
ERROR_LIMIT = 200


@dataclass(frozen=True, slots=True)
class RankPlan:
    """Which rank of how many, where rank 0 is met, by which GPU (short PCI address), how long."""

    rank: int
    world: int
    host: str
    port: int
    seconds: float
    gpu: str = ""
    places: str = ""
    words: int = WORDS
    times: int = TIMES
    backend: str = TORCH

    def text(self) -> str:
        """As the command line has it."""
        return json.dumps(asdict(self))


def plan_of(text: str) -> RankPlan:
    """The plan in an argument; raises ValueError for anything else."""
    try:
        plan = RankPlan(**json.loads(text))
        if not 0 <= plan.rank < plan.world <= 1_024 or plan.words < 1 or plan.times < 1:
            raise ValueError("not a plan: its numbers do not fit")
    except TypeError as problem:
        raise ValueError(f"not a plan: {problem}") from problem
    return plan


def add_up(plan: RankPlan, device: Device, group: Group) -> Iterator[dict[str, Any]]:
    """Add up `times` times; a line each, with the words that came out wrong."""
    for number in range(plan.times):
        array = contribution(device, plan.rank, plan.words, number)
        group.add_up(array[:1] * 0)  # whoever comes first would count waiting for the last
        device.settle()
        began = time.monotonic()
        group.add_up(array)
        device.settle()
        seconds = time.monotonic() - began
        wrong = device.differing(array, expected(device, plan.world, plan.words, number))[0]
        size = 8 * plan.words
        yield {"rank": plan.rank, "bytes": size, "seconds": seconds, "wrong": wrong}


def main(arguments: Sequence[str]) -> int:
    """Print; exit status 0 when all was added up, 1 when a rank failed, this one or another."""
    plan = plan_of(arguments[0])
    try:
        device, group = _meet(plan)
    except (OSError, RuntimeError, ImportError, LookupError) as problem:
        _print({"rank": plan.rank, "missing": f"{type(problem).__name__}: {problem}"[:ERROR_LIMIT]})
        return 1
    _print({"rank": plan.rank, "met": plan.world, "model": device.model})
    try:
        for line in add_up(plan, device, group):
            _print(line)
    except (OSError, RuntimeError) as problem:
        _print({"rank": plan.rank, "error": f"{type(problem).__name__}: {problem}"[:ERROR_LIMIT]})
        return 1
    finally:
        group.close()
    _print({"rank": plan.rank, "end": True})
    return 0


def _meet(plan: RankPlan) -> tuple[Device, Group]:
    at = plan.host, plan.port
    if plan.backend == NUMPY:
        from probes.compute.numpy_backend import NumpyDevice

        until = time.monotonic() + plan.seconds
        return NumpyDevice(plan.gpu), TcpGroup(plan.rank, plan.world, at, until)
    import torch

    from probes.compute import torch_backend

    preload(CUDA, plan.places)
    known = {each.pci: each for each in torch_backend.devices()}
    if plan.gpu not in known:
        raise LookupError(f"CUDA has no GPU {plan.gpu}")
    known[plan.gpu].take()
    return known[plan.gpu], NcclGroup(torch, plan.rank, plan.world, at, plan.seconds)


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
