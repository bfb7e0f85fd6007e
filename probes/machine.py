"""Where a machine keeps what we read, and how its own tools are started.

A machine is a directory: `/` for the one that we run on, `/host` in a Pod, any folder for a
simulated one. Nothing here interprets what it reads.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.driver_library import PLACES

HOST_EXEC = "GPUMEND_HOST_EXEC"
"""Prefix that starts a tool on the host; empty: run `<root>/usr/bin/<tool>` directly."""
HOST_EXEC_DEFAULT = "nsenter --target 1 --mount --uts --ipc --net --pid --"
_LOOK_IN = ("usr/bin", "usr/sbin", "bin", "sbin")
NVML_CHILD = "nvml-child"
"""A machine may have a program of this name that answers as `probes.nvml.child` does."""
COMPUTE_CHILD = "compute-child"
"""The same for `probes.compute.child`."""
PAIR_CHILD = "pair-child"
"""The same for `probes.compute.pair`."""
_NVML_IN = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
"""Where distributions keep the driver's libraries. Containers of the GPU Operator's driver: below
`run/nvidia/driver`."""


class Missing(Exception):
    """The tool is not on this machine."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine. `prefix` starts a tool on the host, None means: directly, from `root`."""

    root: Path
    state: Path
    prefix: tuple[str, ...] | None = None

    @property
    def kmsg(self) -> Path:
        """The kernel log device."""
        return self.root / "dev/kmsg"

    @property
    def lock(self) -> Path:
        """Held exclusively while a reset needs the GPU; our readers hold it shared."""
        return self.state / "gpu.lock"

    def boot_id(self) -> str:
        """The id of this boot; raises OSError or ValueError where it cannot be told."""
        text = (self.root / "proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        if not text:
            raise ValueError("the boot id is empty")
        return text

    def command(self, tool: str, *arguments: str) -> list[str]:
        """The command line that runs `tool` of this machine; raises `Missing`."""
        if self.prefix:
            return [*self.prefix, tool, *arguments]
        return [self._find(tool), *arguments]

    def has(self, tool: str) -> bool:
        """Whether `tool` is among this machine's files; where we may not look, it is not."""
        try:
            return bool(self._find(tool))
        except Missing:
            return False

    def own(self, tool: str) -> str | None:
        """`tool` of the image that we run from, where that is not the machine itself."""
        return None if self.root == Path("/") else shutil.which(tool)

    def nvml_child(self) -> tuple[list[str], dict[str, str]]:
        """The command that asks NVML, and what it needs in its environment."""
        try:
            command = [self._find(NVML_CHILD)]
        except Missing:
            command = [sys.executable, "-S", "-m", "probes.nvml.child"]
        # Looking for site packages takes as long as the rest of its start; we know where they are.
        return command, {
            PLACES: self.libraries,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def compute_child(self, plan: str) -> tuple[list[str], dict[str, str]]:
        """The command that uses the GPUs as planned, and what it needs in its environment."""
        return self._using_gpus(COMPUTE_CHILD, "probes.compute.child", plan)

    def pair_child(self, plan: str) -> tuple[list[str], dict[str, str]]:
        """The same for one side of a pair of nodes."""
        return self._using_gpus(PAIR_CHILD, "probes.compute.pair", plan)

    def _using_gpus(self, tool: str, module: str, plan: str) -> tuple[list[str], dict[str, str]]:
        try:
            command = [self._find(tool)]
        except Missing:
            command = [sys.executable, "-m", module]
        return [*command, plan], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    @property
    def libraries(self) -> str:
        """The folders where the driver's libraries may be, joined by colons."""
        roots = (self.root, self.root / "run/nvidia/driver")
        return ":".join(str(root / place) for root in roots for place in _NVML_IN)

    def _find(self, tool: str) -> str:
        if self.root == Path("/"):
            found = shutil.which(tool)
        else:
            places = (self.root / place / tool for place in _LOOK_IN)
            found = next((str(each) for each in places if os.access(each, os.X_OK)), None)
        if found is None:
            raise Missing(f"{tool} is not installed on this machine (root {self.root})")
        return found


def machine(root: str, state: str | None = None, host_exec: str | None = None) -> Machine:
    """The machine under `root`; its state directory is `<root>/var/lib/gpumend` unless given."""
    where = Path(root).resolve()
    prefix: Sequence[str] = ()
    if where != Path("/"):
        prefix = shlex.split(HOST_EXEC_DEFAULT if host_exec is None else host_exec)
    kept = Path(state) if state else where / "var/lib/gpumend"
    return Machine(where, kept, tuple(prefix) or None)
