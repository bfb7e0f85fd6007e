"""`gpumend bench read-log`: a storm of Xids through `gpumend read-log`, as users run it.

Each run is a process of its own, so that its time has start-up in it and its memory is its own.
The floor is the least that any reader in Python does: a process that searches every line for one
pattern and writes one line for it.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from console.bench import machine

LINES = 800_000
SEED = 3
TARGET_RATE = 200_000
TARGET_MIB = 150
FAULTS = 29

_FLOOR = r"""
import re, sys
search = re.compile(rb"Xid \(PCI:([^)]*)\): (\d+)").search
with open(sys.argv[1], "rb") as log:
    sys.stdout.buffer.writelines(b"%b %b\n" % search(line).groups() for line in log)
"""
_GPUS = [f"0000:{bus}:00" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
_NAMES = ("python3", "pt_main_thread", "VLLM::Worker", "nccl_test, 2")

Message = Callable[[random.Random], str]


class Run(NamedTuple):
    """One process: seconds, of them on a core, peak resident memory in MiB, lines of output."""

    seconds: float
    core_seconds: float
    mib: float
    outputs: int


def measure(lines: int = LINES) -> dict[str, Any]:
    """Time, memory and number of faults of `read-log --collapse` and `read-log --json`."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "kernel.log"
        with log.open("w", encoding="utf-8") as file:
            file.writelines(storm(lines))
        size = log.stat().st_size
        output = Path(folder) / "output"
        floor = _run([sys.executable, "-c", _FLOOR, str(log)], output)
        command = [sys.executable, "-m", "console.main", "read-log", str(log)]
        collapse = _run([*command, "--collapse"], output)
        json_ = _run([*command, "--json"], output)
    return {
        "collapse_lines_per_second": round(lines / collapse.seconds),
        "json_lines_per_second": round(lines / json_.seconds),
        "collapse_lines_per_core_second": round(lines / collapse.core_seconds),
        "json_lines_per_core_second": round(lines / json_.core_seconds),
        "collapse_over_floor": round(collapse.core_seconds / floor.core_seconds, 1),
        "json_over_floor": round(json_.core_seconds / floor.core_seconds, 1),
        "faults": collapse.outputs,
        "collapse_mib": round(collapse.mib, 1),
        "json_mib": round(json_.mib, 1),
        "met": _met(lines, collapse, json_),
        "input": {"lines": lines, "distinct_faults": FAULTS, "bytes": size, "seed": SEED},
        "targets": {"lines_per_second": TARGET_RATE, "mib": TARGET_MIB, "faults": FAULTS},
        "machine": machine.describe(),
    }


def storm(lines: int) -> Iterator[str]:
    """A log of Xids only: 29 distinct faults on eight GPUs, times, processes, addresses vary."""
    dice = random.Random(SEED)  # noqa: S311 - a log, not a secret
    messages = list(_messages())
    now = 4_311.0
    for _ in range(lines):
        now += dice.random() / 1000
        yield f"[{now:12.6f}] NVRM: Xid (PCI:{dice.choice(messages)(dice)}\n"


def _messages() -> Iterator[Message]:
    for gpu in _GPUS:
        yield _of(gpu, 95, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No")
        yield _of(gpu, 45, "Ch {channel:08x} caused by previous Xid 95")
    for gpu in _GPUS[:4]:
        yield _of(gpu, 48, "An uncorrectable double bit error (DBE) has been detected on GPU")
    for gpu in _GPUS[:3]:
        yield _of(gpu, 31, "Ch {channel:08x}, intr 00000000. MMU Fault: faulted @ 0x{word:012x}")
    for gpu in _GPUS[:2]:
        yield _of(gpu, 119, "Timeout after 6s of waiting for RPC response from GPU{channel} GSP!")
        yield _of(gpu, 149, "NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x021425c6 0x00000000)")
    yield _of(f"{_GPUS[5]} GPU-I:05", 94, "Contained: SM (0x1). RST: No, D-RST: No")
    yield _of(_GPUS[6], 63, "Row Remapper: New row marked for remapping, reset gpu to activate.")


def _of(device: str, code: int, tail: str) -> Message:
    def message(dice: random.Random) -> str:
        varying = tail.format(channel=dice.randrange(64), word=dice.randrange(1 << 47))
        process = f"pid={dice.randrange(1 << 22)}, name={dice.choice(_NAMES)}"
        return f"{device}): {code}, {process}, {varying}"

    return message


def _run(command: list[str], output: Path) -> Run:
    start = time.perf_counter()
    with output.open("wb") as stdout:
        process = subprocess.Popen(command, stdout=stdout, env=_environment())  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit status {process.returncode}")
    with output.open("rb") as written:
        outputs = sum(1 for _ in written)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, outputs)


def _environment() -> dict[str, str]:
    """The child finds our packages where this process found them."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _met(lines: int, *runs: Run) -> bool:
    fast = all(lines / run.seconds >= TARGET_RATE for run in runs)
    small = all(run.mib <= TARGET_MIB for run in runs)
    return fast and small and runs[0].outputs <= FAULTS
