"""The sysfs and proc of real machine types, as far as checks read them: a folder each."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probes.checks.subject import Subject
from probes.machine import Machine
from probes.parts import Naming


@dataclass(frozen=True)
class Kind:
    """A machine type: its GPUs, and its adapters with driver, device id and rate."""

    product: str
    gpus: int
    adapters: int
    driver: str = "efa"
    device: str = "0xefa2"
    rate: str = "100 Gb/sec (4X EDR)"


KINDS: Mapping[str, Kind] = {
    "p4d": Kind("p4d.24xlarge", 8, 4, device="0xefa0"),
    "p5": Kind("p5.48xlarge", 8, 32, device="0xefa1"),
    "p5e": Kind("p5e.48xlarge", 8, 32),
    "p5en": Kind("p5en.48xlarge", 8, 16, rate="200 Gb/sec (4X HDR)"),
    "p6-b200": Kind("p6-b200.48xlarge", 8, 8, rate="400 Gb/sec (4X NDR)"),
    "p6-b300": Kind("p6-b300.48xlarge", 8, 16, rate="400 Gb/sec (4X NDR)"),
    "gb200": Kind("p6e-gb200.36xlarge", 4, 8, rate="400 Gb/sec (4X NDR)"),
    "infiniband": Kind("DGX H100", 8, 8, "mlx5_core", "0x1021", "400 Gb/sec (4X NDR)"),
}
_COUNTERS = (
    *("link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors"),
    *("local_link_integrity_errors", "excessive_buffer_overrun_errors"),
)


class Tree:
    """One machine; it starts sound."""

    def __init__(self, root: Path, kind: Kind) -> None:
        self.root, self.kind = root, kind
        write(root / "sys/class/dmi/id/product_name", kind.product)
        write(root / "proc/driver/nvidia/version", "NVRM version: Kernel Module  580.65.06  x")
        write(root / "sys/module/nvidia/version", "580.65.06")
        write(root / "proc/1/mounts", "/dev/root / ext4 rw,relatime 0 0")
        for index in range(kind.gpus):
            self._add_gpu(f"0000:{0x53 + index:02x}:00.0")
        (root / "sys/class/infiniband").mkdir(parents=True)
        for number in range(kind.adapters):
            self.add_adapter(number)
        self.subject = Subject(Machine(root, root / "var/lib/gpumend"), Naming({}, root))

    def name(self, number: int) -> str:
        """How the driver names adapter `number`."""
        return f"rdmap{16 + number}s27" if self.kind.driver == "efa" else f"mlx5_{number}"

    def pci(self, number: int) -> Path:
        return self.root / "sys/bus/pci/devices" / f"0000:{16 + number:02x}:1b.0"

    def port(self, number: int) -> Path:
        return self.root / "sys/class/infiniband" / self.name(number) / "ports/1"

    def add_adapter(self, number: int) -> None:
        efa = self.kind.driver == "efa"
        device = self.pci(number)
        write(device / "vendor", "0x1d0f" if efa else "0x15b3")
        write(device / "device", self.kind.device)
        write(device / "class", "0x020000" if efa else "0x020700")
        driver = self.root / "sys/bus/pci/drivers" / self.kind.driver
        driver.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(driver)
        base = self.root / "sys/class/infiniband" / self.name(number)
        base.mkdir()
        (base / "device").symlink_to(device)
        write(base / "ports/1/state", "4: ACTIVE")
        write(base / "ports/1/phys_state", "5: LinkUp")
        write(base / "ports/1/rate", self.kind.rate)
        write(base / "ports/1/link_layer", "Unspecified" if efa else "InfiniBand")
        if efa:
            write(base / "hw_counters/no_completion_cmds", "0")
            write(base / "hw_counters/cmds_err", "0")
        for counter in () if efa else _COUNTERS:
            write(base / "ports/1/counters" / counter, "0")

    def lose_adapter(self, number: int) -> None:
        """The driver lets go of it, and so does the bus."""
        self.lose_driver(number)
        for each in sorted(self.pci(number).iterdir()):
            each.unlink()
        self.pci(number).rmdir()

    def lose_driver(self, number: int) -> None:
        """It stays on the bus."""
        base = self.root / "sys/class/infiniband" / self.name(number)
        for path in sorted(base.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        base.rmdir()
        (self.pci(number) / "driver").unlink()

    def thread(self, pid: int, state: str, wchan: str, started: int = 7, name: str = "x") -> Path:
        """A process of one thread; returns its folder."""
        task = self.root / "proc" / str(pid) / "task" / str(pid)
        fields = [state, *["0"] * 18, str(started), *["0"] * 20]
        write(task / "stat", f"{pid} ({name}) {' '.join(fields)}")
        write(task / "wchan", wchan)
        (task / "fd").mkdir(exist_ok=True)
        return task

    def _add_gpu(self, pci: str) -> None:
        device = self.root / "sys/bus/pci/devices" / pci
        write(device / "vendor", "0x10de")
        write(device / "class", "0x030200")
        write(device / "config", struct.pack("<HH", 0x10DE, 0x2330).decode("latin-1"))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", "latin-1")
