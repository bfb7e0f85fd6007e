"""The fake libnvidia-ml.so.1: built once a session, and the state file by which it answers."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_nvml.c")
LIBRARY = "libnvidia-ml.so.1"

HEALTHY: Mapping[str, str] = {
    "count": "8",
    "driver": "580.65.06",
    "gpu.*.field.3": "0",
    "gpu.*.field.4": "0",
    "gpu.*.field.82": "44",
    "gpu.*.field.91": "18",
    "gpu.*.field.94": "0",
    "gpu.*.field.143": "0",
    "gpu.*.field.144": "0",
    "gpu.*.field.145": "0",
    "gpu.*.field.179": "0",
    "gpu.*.field.180": "0",
    "gpu.*.field.230": "0",
    "gpu.*.field.269": "0",
    "gpu.*.field.270": "0",
    "gpu.*.field.271": "0",
    "gpu.*.link.*.field.161": "0",
    "gpu.*.link.*.field.162": "0",
    "gpu.*.link.*.field.163": "0",
    "gpu.*.link.*.field.164": "26562",
    "gpu.*.link.*.field.165": "1",
    "gpu.*.persistence": "1",
    "gpu.*.ecc_mode": "1 1",
    "gpu.*.mig_mode": "0 0",
    "gpu.*.width": "16",
    "gpu.*.width_limit": "16",
    "gpu.*.generation": "5",
    "gpu.*.generation_limit": "5",
    "gpu.*.gpu_generation_limit": "5",
    "gpu.*.performance_state": "0",
    "gpu.*.margin": "38",
    "gpu.*.power": "71000",
    "gpu.*.power_limit": "700000",
    "gpu.*.sm_clock": "345",
    "gpu.*.sm_clock_limit": "1980",
    "gpu.*.clock_events": "1",
    "gpu.*.utilization": "0",
    "gpu.*.memory_total": "85520809984",
    "gpu.*.memory_used": "0",
    "gpu.*.banks_exhausted": "0",
    "gpu.*.sram_threshold": "0",
    "gpu.*.repair_pending": "0 0",
    "gpu.*.unrepairable": "0",
    "gpu.*.fabric": "3 0 0 1",
    "gpu.*.processes": "",
    "gpu.*.graphics": "",
    "gpu.*.mps": "",
}
"""An idle p5.48xlarge; addresses and minors come from `address`."""


def address(index: int) -> str:
    """Where GPU `index` is, as NVML writes it."""
    return f"00000000:{0x53 + 16 * index:02X}:00.0"


class State:
    """The state file; every change replaces it whole."""

    def __init__(self, path: Path, said: Mapping[str, str] = HEALTHY) -> None:
        self.path = path
        self.said = dict(said)
        for index in range(int(self.said.get("count", "0"))):
            self.said[f"gpu.{index}.pci"] = address(index)
            self.said[f"gpu.{index}.minor"] = str(index)
        self._write()

    def say(self, **changes: object) -> None:
        """Change by keys in which `__` stands for a dot and `any` for `*`; None takes one away."""
        self.put({key.replace("__", ".").replace("any", "*"): v for key, v in changes.items()})

    def put(self, changes: Mapping[str, object]) -> None:
        """Change by keys as the file has them; None takes one away."""
        for key, value in changes.items():
            if value is None:
                self.said.pop(key, None)
            else:
                self.said[key] = str(value)
        self._write()

    def _write(self) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f"{key} {value}\n" for key, value in self.said.items()))
        fresh.replace(self.path)


def build(folder: Path, without: Sequence[str] = ()) -> Path:
    """Compile the library into a folder, lacking the symbols of an older driver; return it."""
    compiler = shutil.which("cc")
    if compiler is None:
        if os.environ.get("GPUMEND_REQUIRE_CONTROLPLANE"):
            raise FileNotFoundError("cc")
        pytest.skip("needs a C compiler (Debian: apt-get install gcc)")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / LIBRARY
    named = f"-Wl,-soname,{LIBRARY}"
    command = [compiler, "-O1", "-shared", "-fPIC", named, "-o", str(library), str(SOURCE)]
    if without:
        script = folder / "hidden"
        script.write_text("{ global: *; local: " + " ".join(f"{each};" for each in without) + " };")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True)
    return library
