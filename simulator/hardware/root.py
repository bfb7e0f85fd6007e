"""The files of a machine's root: what a probe reads of a machine without asking any tool."""

import struct
import sys
from pathlib import Path

from simulator.hardware.adapters import build_adapters
from simulator.hardware.state import Gpu, Hardware

MODEL = "NVIDIA H100 80GB HBM3"
PRODUCT = "p5.48xlarge"
DRIVER = "550.144.03"
VENDOR, DEVICE, CLASS = 0x10DE, 0x2330, 0x030200
CONFIG_BYTES = 256

TOOLS = ("nvidia-smi", "nvml-child", "compute-child", "all_reduce_perf", "pair-child", "systemctl")

BOOT_LINES = (
    "Linux version 6.8.0-1021 (gcc 13.2.0) #23 SMP",
    "Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-1021 root=/dev/sda1",
    "pci 0000:00:00.0: [8086:1237] type 00 class 0x060000",
    f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Mon Dec 30 17:44:08 UTC 2024",
    "nvidia-uvm: Loaded the UVM driver, major device number 510.",
)

_TOOL = """#!/bin/sh
# Plays {tool} of a simulated machine.
PYTHONPATH={path} exec {python} -S -m simulator.hardware.tools {tool} {base} "$@"
"""


def build_root(root: Path, base: Path, hardware: Hardware, system_uuid: str) -> None:
    """Make the directory of a machine; the kernel log and the boot id come with a boot."""
    for folder in ("dev", "proc/sys/kernel/random", "proc/driver/nvidia", "var/lib/gpumend"):
        (root / folder).mkdir(parents=True)
    _write(root / "sys/class/dmi/id/product_uuid", f"{system_uuid}\n")
    _write(root / "sys/class/dmi/id/product_name", f"{PRODUCT}\n")
    _write(root / "proc/driver/nvidia/version", f"NVRM version: Kernel Module  {DRIVER}\n")
    _write(root / "sys/module/nvidia/version", f"{DRIVER}\n")
    _write(root / "proc/2/comm", "kthreadd\n")
    for tool in TOOLS:
        script = root / "usr/bin" / tool
        source = Path(__file__).resolve().parents[2]
        _write(script, _TOOL.format(tool=tool, path=source, python=sys.executable, base=base))
        script.chmod(0o755)
    for gpu in hardware.gpus:
        _build_gpu(root, gpu)
    build_adapters(root)


def show_boot(root: Path, boot_id: str) -> None:
    """Say which boot this is."""
    _replace(root / "proc/sys/kernel/random/boot_id", f"{boot_id}\n".encode())


def show_gpus(root: Path, hardware: Hardware) -> None:
    """PCI config space as it answers now: all ones where a GPU is off the bus."""
    for gpu in hardware.gpus:
        config = b"\xff" * CONFIG_BYTES if gpu.symptoms.lost else _config()
        path = _device(root, gpu) / "config"
        if path.read_bytes() != config:
            _replace(path, config)


def _build_gpu(root: Path, gpu: Gpu) -> None:
    device = _device(root, gpu)
    _write(device / "vendor", f"0x{VENDOR:04x}\n")
    _write(device / "device", f"0x{DEVICE:04x}\n")
    _write(device / "class", f"0x{CLASS:06x}\n")
    _write(device / "current_link_width", "16\n")
    _write(device / "max_link_width", "16\n")
    (device / "config").write_bytes(_config())
    information = (
        f"Model: \t\t {MODEL}\nIRQ:   \t\t {64 + gpu.index}\nGPU UUID: \t {gpu.uuid}\n"
        f"Bus Type: \t PCIe\nBus Location: \t {gpu.bdf}.0\nDevice Minor: \t {gpu.index}\n"
    )
    _write(root / "proc/driver/nvidia/gpus" / f"{gpu.bdf}.0" / "information", information)
    _write(root / "dev" / f"nvidia{gpu.index}", "")


def _device(root: Path, gpu: Gpu) -> Path:
    return root / "sys/bus/pci/devices" / f"{gpu.bdf}.0"


def _config() -> bytes:
    head = struct.pack("<HHHHBBBB", VENDOR, DEVICE, 0x0406, 0x0010, 0xA1, 0x00, 0x02, 0x03)
    return head.ljust(CONFIG_BYTES, b"\0")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _replace(path: Path, content: bytes) -> None:
    """In one step, so that no reader sees half of it."""
    fresh = path.with_name(f".{path.name}-next")
    fresh.write_bytes(content)
    fresh.replace(path)
