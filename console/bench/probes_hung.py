"""Tools that hang, all at once: when each becomes a finding, and what the other checks notice.

In this process, with the real limits. Tools are deaf to TERM, as a child in uninterruptible sleep
is; files that hang in a driver are FIFOs that nobody writes to.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fleet.check import Check
from probes import files
from probes.agent.senses import NAMES, PROCESSES, Sensed, Senses
from probes.checks import subject
from probes.child import Tool
from probes.machine import NVML_CHILD, Machine

LATE_LIMIT = 1.0
"""Seconds after its limit in which a hung tool must be a finding."""
DELAY_LIMIT = 5.0
"""Seconds by which a round of the others may be late: a twelfth of their shortest interval."""
_DEAF = "#!/bin/sh\ntrap '' TERM\nwhile [ -e {alive} ]; do sleep 0.2; done\n"
_TOOK = re.compile(r'^gpumend_agent_check_seconds\{check="(.+?)"\} (.+)$', re.MULTILINE)
_TOOLS = (NVML_CHILD, "dcgmi")
_FILES = (
    "proc/driver/nvidia/gpus/0000:53:00.0/information",
    "sys/bus/pci/devices/0000:53:00.0/config",
    "sys/class/infiniband/rdmap16s27/ports/1/state",
)
_LIMITS: Mapping[str, float] = {
    NAMES: files.LIMIT,
    Check.PCI: files.LIMIT,
    Check.ADAPTERS: files.LIMIT,
    PROCESSES: subject.TOOL_LIMIT,
    Check.DCGM: subject.TOOL_LIMIT,
}
"""The check that is the first to ask each of them, and how long it may take: what DCGM's silence
means is not told before NVML has spoken or hung."""


def measure(machine: Machine) -> dict[str, Any]:
    """Two rounds beside everything that hangs: lateness of findings, delay of the others."""
    senses = Senses(machine)
    with _hanging(machine):
        told, seconds = _round(senses)
        _, again = _round(senses)
        tools = dict(senses._subject.tools)
        hanging = sorted(name for name, tool in tools.items() if tool.abandoned)
    _wait(tools.values())
    late = {name: seconds[name] - limit for name, limit in _LIMITS.items() if name in seconds}
    slow = {name for name, took in seconds.items() if took >= min(_LIMITS.values())}
    delay = max(at for name, at in told.items() if name not in slow)
    return {
        "tools_hung": len(late),
        "left_behind": hanging,
        "checks_that_waited": len(slow),
        "late_seconds": round(max(late.values()), 2),
        "others_delayed_seconds": round(delay, 2),
        "next_round_seconds": round(max(again.values()), 2),
    }


def met(found: Mapping[str, Any]) -> bool:
    """Whether five tools that hang are told in time, and the others keep their intervals."""
    in_time = found["tools_hung"] >= len(_LIMITS) and found["late_seconds"] <= LATE_LIMIT
    return bool(in_time and found["others_delayed_seconds"] <= DELAY_LIMIT)


def _round(senses: Senses) -> tuple[dict[str, float], dict[str, float]]:
    """When each check was told since the round began, and how long each took."""
    told: dict[str, float] = {}
    began = time.monotonic()

    def tell(sensed: Sensed) -> None:
        for found in sensed.findings:
            told.setdefault(found.check, time.monotonic() - began)

    senses.look({}, True, tell)
    took = _TOOK.findall(senses.figures.text())
    return told, {name: float(seconds) for name, seconds in took}


@contextmanager
def _hanging(machine: Machine) -> Iterator[None]:
    alive = machine.root.parent / "hanging"
    alive.touch()
    for tool in _TOOLS:
        script = machine.root / "usr/bin" / tool
        script.unlink(missing_ok=True)
        script.write_text(_DEAF.format(alive=alive))
        script.chmod(0o755)
    for name in _FILES:
        (machine.root / name).unlink()
        os.mkfifo(machine.root / name)
    try:
        yield
    finally:
        alive.unlink()


def _wait(tools: Iterable[Tool]) -> None:
    for tool in tools:
        while tool.outstanding:
            time.sleep(0.05)
