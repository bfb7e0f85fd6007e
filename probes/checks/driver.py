"""Is the driver one whole, and does nobody hang in it?

Its parts must be of one version (an upgrade may be under way: hold). A thread that sleeps
uninterruptibly in the driver over several rounds is a hang, whatever NVML says. A fabric manager
that should run and does not keeps NVSwitches from carrying anything.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.subject import Subject, fault, ok, unknown
from probes.stuck import Thread, threads_in_driver

ROUNDS = 3
"""Rounds in which the same thread must be seen asleep: for a moment it is normal."""
_VERSION = re.compile(r"\b(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b")
_FABRIC_MANAGER = "etc/systemd/system/multi-user.target.wants/nvidia-fabricmanager.service"
_NAME_LIMIT = 15
"""Characters that the kernel keeps of a process's name."""
_SAY_A_VERSION = {"kernel": "proc/driver/nvidia/version", "module": "sys/module/nvidia/version"}


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a trouble, or one ok; nothing where there is no NVIDIA driver at all."""
    root = subject.machine.root
    if not (root / "proc/driver/nvidia").exists():
        return (unknown(Check.DRIVER, HOST, "driver:not-loaded", "no /proc/driver/nvidia"),)
    found = (*_versions(subject), *_stuck(subject), *_fabric_manager(root))
    return found or (ok(Check.DRIVER, HOST),)


def versions(root: Path) -> dict[str, str]:
    """The version that each part of the driver says; those that say none are left out."""
    found = {}
    for name, path in _SAY_A_VERSION.items():
        try:
            said = _VERSION.search((root / path).read_text("utf-8", "replace"))
        except OSError:
            continue
        if said:
            found[name] = said[1]
    return found


def _versions(subject: Subject) -> Iterator[Finding]:
    said = versions(subject.machine.root)
    if library := subject.nvml().driver:
        said["library"] = library
    if len(set(said.values())) > 1:
        text = ", ".join(f"{name} {version}" for name, version in sorted(said.items()))
        name = FaultName.CONFIG_MISMATCH
        yield fault(
            Check.DRIVER, HOST, name, "driver:versions", Advice.HOLD, text, Severity.DEGRADED
        )


def _stuck(subject: Subject) -> Iterator[Finding]:
    """The same thread (by its start) in every one of the last rounds."""
    asleep = threads_in_driver(subject.machine.root)
    counted: dict[Thread, int] = {each: subject.stuck.get(each, 0) + 1 for each in asleep}
    subject.stuck = counted
    for thread, rounds in counted.items():
        if rounds >= ROUNDS:
            text = f"{thread.name} has been asleep in {thread.where} for {rounds} rounds"
            code, name = "driver:stuck-thread", FaultName.DRIVER_HUNG
            yield fault(Check.DRIVER, HOST, name, code, Advice.REBOOT, text)
            return


def _fabric_manager(root: Path) -> Iterator[Finding]:
    """Wanted by systemd here, and no process of that name: clouds may run it outside."""
    if not (root / _FABRIC_MANAGER).is_symlink():
        return
    name = "nv-fabricmanager"[:_NAME_LIMIT]
    for process in (root / "proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text("utf-8", "replace").strip() == name:
                return
        except OSError:
            continue
    code, kind = "fabric:manager-gone", FaultName.FABRIC_NOT_READY
    yield fault(Check.DRIVER, HOST, kind, code, Advice.REBOOT, "nv-fabricmanager does not run")
