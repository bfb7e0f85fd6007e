"""The machine a benchmark ran on, named in its result: numbers alone compare nothing."""

import os
import platform
import time
from pathlib import Path


def describe() -> dict[str, str | int | float]:
    """Processor, cores, kernel and Python, in words; and how many processes wanted a core."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def core_seconds(pid: int) -> float:
    """Seconds that a process has spent on any core; unlike the clock's, the same on a busy one.

    By the process's own clock (its id is made as clock_getcpuclockid(3) makes it): `/proc` counts
    in ticks of 10 ms, which is more than a quiet agent spends in ten seconds.
    """
    return time.clock_gettime(~pid << 3 | _SCHEDULER)


_SCHEDULER = 2
"""Of the clocks of a process, the one that counts what it ran (CPUCLOCK_SCHED)."""


def ended_core_seconds(pid: int) -> float:
    """Seconds that children of a process have spent which it has waited for, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int, name: str = "VmRSS") -> float:
    """Memory of a process in MiB: `VmRSS` now, `VmHWM` at its highest."""
    return mib(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), name)


def mib(status: str, name: str) -> float:
    """A line of `/proc/PID/status` that is in kB, in MiB."""
    line = next(each for each in status.splitlines() if each.startswith(f"{name}:"))
    return round(int(line.split()[1]) / 1024, 1)


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(named, platform.machine())
