"""What the driver library tells of a simulated machine: the lines that a child asking it prints.

A line of JSON for the driver, one a GPU and one for the end; a value that is refused is its NVML
return code in a list. Everything comes from the truth about the machine.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from simulator.hardware.hang import hang_with
from simulator.hardware.machine import Machine
from simulator.hardware.root import DRIVER
from simulator.hardware.state import Gpu

LINKS = 18
LINK_SPEED = 26_562
NOT_SUPPORTED, GPU_IS_LOST = 3, 15
_OF_NVLINK5 = ("malformed", "overrun", "receive_errors", "integrity", "recovery_failed")

_LINK: dict[str, Any] = {
    **dict.fromkeys(("replay", "recovery", "crc"), 0),
    **{name: [NOT_SUPPORTED] for name in _OF_NVLINK5},
    "speed": LINK_SPEED,
    "state": 1,
}
_SOUND: dict[str, Any] = {
    "ecc_corrected": 0,
    **{name: [NOT_SUPPORTED] for name in ("retired_sbe", "retired_dbe", "retired_pending")},
    "memory_temperature": 44,
    "nvlink_count": LINKS,
    "pcie_replays": 0,
    "remap_failure": 0,
    "c2c_count": [NOT_SUPPORTED],
    **{name: [NOT_SUPPORTED] for name in ("slowdown_limit", "memory_limit")},
    **dict.fromkeys(("pcie_non_fatal", "pcie_fatal"), 0),
    **dict.fromkeys(("sw_thermal_ns", "hw_thermal_ns", "power_brake_ns"), 0),
    "persistence": 1,
    "ecc_mode": {"list": [1, 1]},
    "mig_mode": {"list": [0, 0]},
    **dict.fromkeys(("width", "width_limit"), 16),
    **dict.fromkeys(("generation", "generation_limit", "gpu_generation_limit"), 5),
    "performance_state": 0,
    "margin": 38,
    "power": 71_000,
    "power_limit": 700_000,
    "sm_clock": 345,
    "sm_clock_limit": 1_980,
    "clock_events": 1,
    "utilization": 0,
    "memory_used": 0,
    "memory_total": 85_520_809_984,
    **dict.fromkeys(("banks_exhausted", "sram_threshold", "unrepairable"), 0),
    "repair_pending": {"list": [0, 0]},
    "fabric": {"list": [3, 0, 0, 1]},
}


def nvml_child(machine: Machine, arguments: Sequence[str]) -> int:
    """Print what NVML tells now."""
    del arguments
    hang_with(machine)
    for line in lines(machine):
        sys.stdout.write(json.dumps(line) + "\n")
    return 0


def lines(machine: Machine) -> Iterator[dict[str, Any]]:
    """The driver, each GPU, the end."""
    hardware = machine.read()
    yield {"driver": DRIVER, "count": len(hardware.gpus)}
    for gpu in hardware.gpus:
        processes = [each.pid for each in hardware.on(gpu.index)]
        yield _lost(gpu) if gpu.symptoms.lost else _gpu(gpu, processes)
    yield {"end": True}


def _lost(gpu: Gpu) -> dict[str, Any]:
    return {"gpu": gpu.index, "handle": [GPU_IS_LOST]}


def _gpu(gpu: Gpu, processes: Sequence[int]) -> dict[str, Any]:
    values = {
        **_SOUND,
        "ecc_uncorrected": gpu.symptoms.uncorrected,
        "remapped_uncorrectable": gpu.remapped_rows,
        "remap_pending": int(gpu.symptoms.remap_pending),
        "recovery_action": gpu.symptoms.recovery_action,
        "processes": {"list": list(processes)},
        "graphics": {"list": []},
        "mps": {"list": []},
    }
    where = f"0000{gpu.bdf.upper()}.0"
    links = [_LINK] * LINKS
    return {"gpu": gpu.index, "pci": where, "minor": gpu.index, "values": values, "links": links}
