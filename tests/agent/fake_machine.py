"""A machine that is a folder: log, boot id, PCI devices, driver list, and tools as scripts."""

import os
from pathlib import Path

from probes.machine import Machine, machine

BOOT = "11111111-0000-0000-0000-000000000001"
UUID = "GPU-00000000-1111-2222-3333-44444444444{}"


class FakeMachine:
    """Starts with two sound GPUs at 0000:52:00 (gpu:0) and 0000:53:00 (gpu:1)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sequence = -1
        self.machine: Machine = machine(str(root), None, "")
        for folder in ("dev", "proc/sys/kernel/random", "usr/bin", "sys/bus/pci/devices"):
            (root / folder).mkdir(parents=True)
        self.boot(BOOT)
        for index, pci in enumerate(("0000:52:00.0", "0000:53:00.0")):
            self.add_gpu(pci, index)
        self.answer("nvidia-smi", self.smi())

    def boot(self, boot_id: str) -> None:
        (self.root / "dev/kmsg").write_text("")
        self.sequence = -1
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"{boot_id}\n")
        self.log("Linux version 6.18.44")

    def log(self, *texts: str, priority: int = 4) -> int:
        with (self.root / "dev/kmsg").open("a") as file:
            for text in texts:
                self.sequence += 1
                file.write(f"{priority},{self.sequence},{self.sequence * 1000},-;{text}\n")
        return self.sequence

    def add_gpu(self, pci: str, index: int, config: bytes = b"\xde\x10\x30\x23" * 16) -> None:
        device = self.root / "sys/bus/pci/devices" / pci
        device.mkdir()
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
        (device / "config").write_bytes(config)
        driver = self.root / "proc/driver/nvidia/gpus" / pci
        driver.mkdir(parents=True)
        (driver / "information").write_text(
            f"Model: \t\t NVIDIA H100\nGPU UUID: \t {UUID.format(index)}\n"
            f"Bus Location: \t {pci}\nDevice Minor: \t {index}\n"
        )

    def smi(self, action: str = "None", ecc: str = "0", remap: str = "No, No") -> str:
        """A script that answers for both GPUs; the arguments are those of the first."""
        return f"""
        case "$1" in
        *gpu_recovery_action*) echo "00000000:52:00.0, {action}"; echo "00000000:53:00.0, None";;
        *ecc.errors*) echo "00000000:52:00.0, {ecc}"; echo "00000000:53:00.0, 0";;
        *remapped_rows*) echo "00000000:52:00.0, {remap}"; echo "00000000:53:00.0, No, No";;
        *index*) echo "00000000:52:00.0, 0"; echo "00000000:53:00.0, 1";;
        --gpu-reset) echo "$@" >> "{self.root}/resets"; echo "GPU was successfully reset.";;
        *) exit 2;;
        esac
        """

    def answer(self, tool: str, script: str) -> None:
        path = self.root / "usr/bin" / tool
        path.write_text("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def remove(self, tool: str) -> None:
        (self.root / "usr/bin" / tool).unlink()


def xid(pci: str, code: int, tail: str = "pid=1, name=python3, Ch 00000008") -> str:
    return f"NVRM: Xid (PCI:{pci}): {code}, {tail}"


def recovery(pci: str, value: int) -> str:
    return xid(pci, 154, f"GPU recovery action changed from 0x0 (None) to {value:#x} (whatever)")
