"""The disposable process that uses the GPUs: `python -m probes.compute.child PLAN`.

PLAN is JSON (`Plan`). It prints one line of JSON a thing as soon as it knows it, and judges
nothing. What it lacks (torch, a driver) is a line, too.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from probes.compute.backend import Device
from probes.compute.examine import Line, Sizes, examine
from probes.compute.load import Watcher
from probes.driver_library import CUDA, preload

TORCH, NUMPY = "torch", "numpy"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: `gpus` and `witnesses` by short PCI address, within so many seconds.

    `nvml` is the command that asks NVML under load, `environment` what it needs; `places` are
    folders where the driver's library may be, joined by colons. Of each `seed` the numbers that are
    multiplied are others: what one set of them does not show, another may. Backend `numpy` proves
    nothing about a GPU: it is for tests.
    """

    gpus: tuple[str, ...]
    seconds: float
    witnesses: tuple[str, ...] = ()
    nvml: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    places: str = ""
    seed: int = 0
    backend: str = TORCH

    def text(self) -> str:
        """As the command line has it."""
        return json.dumps(asdict(self))


def plan_of(text: str) -> Plan:
    """The plan in an argument; raises ValueError for anything else."""
    try:
        fields = json.loads(text)
        lists = {name: tuple(fields.get(name, ())) for name in ("gpus", "witnesses", "nvml")}
        return Plan(**{**fields, **lists})
    except (TypeError, AttributeError) as problem:
        raise ValueError(f"not a plan: {problem}") from problem


def main(arguments: Sequence[str], sizes: Sizes | None = None) -> int:
    """Examine, printing; exit status 0 whenever it came to its end, also where it could do nothing.

    Time counts from the start of this function: importing a large library is part of it.
    """
    plan = plan_of(arguments[0])
    until = time.monotonic() + plan.seconds
    sizes = sizes or Sizes()
    seeded = replace(sizes, shape=replace(sizes.shape, seed=plan.seed))
    found = _devices(plan)
    if isinstance(found, str):
        _print({"missing": found})
        return 0
    known, host = found
    devices = [known[each] for each in plan.gpus if each in known]
    witnesses = [known[each] for each in plan.witnesses if each in known]
    _print({"begun": plan.backend})
    watcher = Watcher(plan.nvml, dict(plan.environment))
    for line in examine(devices, witnesses, host, watcher, time.monotonic, until, seeded):
        _print(line)
    return 0


def _devices(plan: Plan) -> tuple[dict[str, Device], Device] | str:
    """Devices by address and the host in their place, or what is missing."""
    if plan.backend == NUMPY:
        from probes.compute.numpy_backend import NumpyDevice

        return {each: NumpyDevice(each) for each in plan.gpus + plan.witnesses}, NumpyDevice()
    return _torch_devices(plan.places)


def _torch_devices(places: str) -> tuple[dict[str, Device], Device] | str:
    try:
        from probes.compute import torch_backend
    except ImportError as problem:
        return f"torch ({problem})"
    try:
        preload(CUDA, places)
        found: list[Device] = [*torch_backend.devices()]
    except (OSError, RuntimeError) as problem:
        return f"CUDA ({problem})"
    if not found:
        return "CUDA (torch finds no device)"
    return {each.pci: each for each in found}, torch_backend.TorchDevice("cpu")


def _print(line: Line) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
