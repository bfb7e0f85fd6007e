"""The machine's own tools, as far as anybody here calls them, and what asks its driver library.

They answer as the real ones do, lies and exit codes included, from the truth about the machine.
Run by the scripts in `<root>/usr/bin`, with as little of Python as possible: standard library only.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from simulator.hardware.compute import all_reduce_perf, compute_child
from simulator.hardware.hang import hang_with
from simulator.hardware.machine import Machine
from simulator.hardware.nvml import nvml_child
from simulator.hardware.pairing import pair_child
from simulator.hardware.power import NoPower, Signal
from simulator.hardware.root import DRIVER, MODEL
from simulator.hardware.state import Gone, Gpu, Hardware, InUse

LOST = 15
"""Exit status of nvidia-smi when the driver has lost a GPU."""
INVALID = 2

RECOVERY_ACTIONS = ("None", "GPU Reset", "Node Reboot", "Drain P2P", "Drain and Reset")

FIELDS: Mapping[str, Callable[[Gpu], str]] = {
    "index": lambda gpu: str(gpu.index),
    "name": lambda _: MODEL,
    "uuid": lambda gpu: gpu.uuid,
    "gpu_uuid": lambda gpu: gpu.uuid,
    "serial": lambda gpu: gpu.serial,
    "gpu_serial": lambda gpu: gpu.serial,
    "pci.bus_id": lambda gpu: _long(gpu),
    "gpu_bus_id": lambda gpu: _long(gpu),
    "driver_version": lambda _: DRIVER,
    "pstate": lambda _: "P0",
    "temperature.gpu": lambda _: "38",
    "memory.total": lambda _: "81559",
    "memory.used": lambda _: "0",
    "utilization.gpu": lambda _: "0",
    "ecc.mode.current": lambda _: "Enabled",
    "mig.mode.current": lambda _: "Disabled",
    "persistence_mode": lambda _: "Enabled",
    "gpu_recovery_action": lambda gpu: RECOVERY_ACTIONS[gpu.symptoms.recovery_action],
    "ecc.errors.uncorrected.volatile.total": lambda gpu: str(gpu.symptoms.uncorrected),
    "ecc.errors.uncorrected.volatile.dram": lambda gpu: str(gpu.symptoms.uncorrected),
    "ecc.errors.uncorrected.volatile.sram": lambda _: "0",
    "ecc.errors.corrected.volatile.total": lambda _: "0",
    "remapped_rows.uncorrectable": lambda gpu: str(gpu.remapped_rows),
    "remapped_rows.correctable": lambda _: "0",
    "remapped_rows.pending": lambda gpu: "Yes" if gpu.symptoms.remap_pending else "No",
    "remapped_rows.failure": lambda gpu: "Yes" if gpu.symptoms.remap_failed else "No",
    "retired_pages.pending": lambda _: "[N/A]",
}


def nvidia_smi(machine: Machine, arguments: Sequence[str]) -> int:
    """Answer the queries of GPUs, remapped rows and compute apps, `--gpu-reset`, and a list."""
    hang_with(machine)
    options = _options(arguments)
    if "gpu-reset" in options:
        return _reset(machine, options.get("id", ""))
    hardware = machine.read()
    lost = [gpu for gpu in _chosen(hardware, options) if gpu.symptoms.lost]
    if lost:
        for gpu in lost:
            print(
                f"Unable to determine the device handle for GPU{gpu.index}: {gpu.bdf}.0:"
                " GPU is lost.  Reboot the system to recover this GPU"
            )
        return LOST
    if "query-compute-apps" in options:
        return _compute_apps(hardware)
    fields = options.get("query-gpu", options.get("query-remapped-rows", ""))
    if not fields:
        return _list(hardware)
    return _query(_chosen(hardware, options), fields.split(","), options.get("format", ""))


def systemctl(machine: Machine, arguments: Sequence[str]) -> int:
    """Answer `reboot`; everything else is not known here."""
    if "reboot" not in arguments:
        print(f"Unknown command verb {' '.join(arguments)!r}.", file=sys.stderr)
        return 1
    try:
        machine.power.ask(Signal.REBOOT)
    except NoPower:
        print("Call to Reboot failed: Connection refused", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str]) -> dict[str, str]:
    short = {"-i": "--id", "-r": "--gpu-reset", "-L": "--list-gpus"}
    options: dict[str, str] = {}
    last = ""
    for argument in (short.get(each, each) for each in arguments):
        if argument.startswith("--"):
            last, _, value = argument[2:].partition("=")
            options[last] = value
        elif last:
            options[last] = argument
    return options


def _chosen(hardware: Hardware, options: Mapping[str, str]) -> list[Gpu]:
    wanted = options.get("id", "")
    if not wanted:
        return list(hardware.gpus)
    return [gpu for name in wanted.split(",") if (gpu := _find(hardware, name))]


def _find(hardware: Hardware, name: str) -> Gpu | None:
    wanted = name.lower()
    for gpu in hardware.gpus:
        names = {str(gpu.index), gpu.uuid.lower(), gpu.bdf, f"{gpu.bdf}.0", _long(gpu).lower()}
        if wanted in names:
            return gpu
    return None


def _long(gpu: Gpu) -> str:
    """The driver writes domains with eight digits."""
    return f"0000{gpu.bdf.upper()}.0"


def _reset(machine: Machine, name: str) -> int:
    gpu = _find(machine.read(), name)
    if gpu is None:
        print(f"No devices were found for {name!r}")
        return 6
    try:
        machine.reset(gpu.index)
    except InUse:
        print(
            f"The following GPUs could not be reset:\n  GPU {_long(gpu)}: In use by another client"
            "\n\n1 device is currently being used by one or more other processes"
        )
        return 1
    except Gone:
        print(f"GPU {_long(gpu)} could not be reset: GPU is lost")
        return LOST
    print(f"GPU {_long(gpu)} was successfully reset.\nAll done.")
    return 0


def _query(gpus: Sequence[Gpu], names: Sequence[str], form: str) -> int:
    unknown = [name for name in names if name not in FIELDS]
    if unknown:
        print(f'Field "{unknown[0]}" is not a valid field to query.')
        return INVALID
    if "noheader" not in form:
        print(", ".join(names))
    for gpu in gpus:
        print(", ".join(FIELDS[name](gpu) for name in names))
    return 0


def _compute_apps(hardware: Hardware) -> int:
    for gpu in hardware.gpus:
        for process in hardware.on(gpu.index):
            print(f"{gpu.uuid}, {process.pid}, python3")
    return 0


def _list(hardware: Hardware) -> int:
    for gpu in hardware.gpus:
        print(f"GPU {gpu.index}: {MODEL} (UUID: {gpu.uuid})")
    return 0


TOOLS = {
    "nvidia-smi": nvidia_smi,
    "nvml-child": nvml_child,
    "compute-child": compute_child,
    "all_reduce_perf": all_reduce_perf,
    "pair-child": pair_child,
    "systemctl": systemctl,
}

if __name__ == "__main__":
    sys.exit(TOOLS[sys.argv[1]](Machine(Path(sys.argv[2])), sys.argv[3:]))
