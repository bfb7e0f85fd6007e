"""The machine a benchmark ran on, named in its result: numbers alone compare nothing."""

import os
import platform
from pathlib import Path


def describe() -> dict[str, str | int]:
    """Processor, cores, kernel and Python, in words."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(named, platform.machine())
