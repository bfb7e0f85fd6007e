"""The machine that `bench probes` looks at: eight GPUs, 32 EFA links, a log that can be waited for.

It is the simulator's, with two changes. Its kernel log is a FIFO, which wakes its reader as the
real device does. Its NVML is asked by the real child through the real binding where a C compiler
and our C library are at hand: that child costs more than the one that plays it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from probes.machine import NVML_CHILD, Machine, machine
from probes.nvml.asks import CALLS, FIELDS, LINK_FIELDS
from simulator.hardware import nvml
from simulator.hardware.machine import Machine as Simulated

LIBRARY = "libnvidia-ml.so.1"
SOURCE = Path(__file__).parents[2] / "tests/nvml/fake_nvml.c"
STATE = "FAKE_NVML_STATE"
REAL, PLAYED = "real child, C library of ours", "played by the simulator"


def build(folder: Path) -> tuple[Machine, Mapping[str, str]]:
    """A machine that has just booted, and what a process that looks at it needs to know.

    The environment is empty where NVML is played.
    """
    simulated = Simulated.create(folder / "machine", "bench")
    log = simulated.root / "dev/kmsg"
    log.unlink()
    os.mkfifo(log)
    here = machine(str(simulated.root), None, "")
    compiler = shutil.which("cc")
    if compiler is None or not SOURCE.exists():
        return here, {}
    library = folder / "lib" / LIBRARY
    library.parent.mkdir()
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)  # noqa: S603 - our own source
    said = folder / "nvml.state"
    said.write_text("".join(f"{key} {value}\n" for key, value in _state(simulated)))
    (simulated.root / "usr/bin" / NVML_CHILD).unlink()
    return here, {"LD_LIBRARY_PATH": str(library.parent), STATE: str(said)}


def _state(simulated: Simulated) -> Iterator[tuple[str, str]]:
    """What the simulator's own child would say, as the C library reads it."""
    head, *gpus, _ = nvml.lines(simulated)
    yield "count", str(head["count"])
    yield "driver", str(head["driver"])
    for gpu in gpus:
        yield f"gpu.{gpu['gpu']}.pci", gpu["pci"]
        yield f"gpu.{gpu['gpu']}.minor", str(gpu["minor"])
    values, link = gpus[0]["values"], gpus[0]["links"][0]
    yield from _said((f"gpu.*.field.{FIELDS[each]}", values[each]) for each in FIELDS)
    yield from _said((f"gpu.*.{each}", values[each]) for each in CALLS)
    links = ((f"gpu.*.link.*.field.{LINK_FIELDS[each]}", link[each]) for each in LINK_FIELDS)
    yield from _said(links)


def _said(pairs: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """What is refused is left out: the library then says that it is not supported."""
    for key, value in pairs:
        match value:
            case {"list": items}:
                yield key, " ".join(str(each) for each in items)
            case int() | float():
                yield key, str(value)
