"""The machine a benchmark ran on, named in its result: numbers alone compare nothing."""

import os
import platform
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
    """Seconds that a process has spent on any core; unlike the clock's, the same on a busy one."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(named, platform.machine())
