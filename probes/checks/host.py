"""Can the host itself carry work: its disks, and its clock?

Read-only by the host's own mount table: our view of it is always read-only. A clock that the kernel
calls unsynchronised breaks the order of everybody's events; it is asked of the kernel that we run
on, so only where that is the machine's.
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.subject import Subject, fault, ok, unknown

DISKS = ("/", "/var/lib/kubelet", "/var/lib/containerd")
"""Mount points that every Pod of the node depends on; those that are none belong to `/`."""
FULL = 0.95
"""Share of a disk in use; at 95 % kubelets begin to evict and logs are lost."""
MOUNTS = "proc/1/mounts"
_UNSYNCHRONISED = 0x40
_LINES = 4_096


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a trouble, or one ok."""
    found = (*_disks(subject.machine.root), *_clock(subject))
    return found or (ok(Check.HOST, HOST),)


def _disks(root: Path) -> Iterator[Finding]:
    try:
        lines = (root / MOUNTS).read_text("utf-8", "replace").splitlines()[:_LINES]
    except FileNotFoundError:
        return
    except OSError as problem:
        yield unknown(Check.HOST, HOST, "host:mounts-unreadable", str(problem))
        return
    for place, options in mounted(lines).items():
        if "ro" in options:
            yield _degraded("host:read-only", f"{place} is mounted read-only")
        yield from _space(root, place)


def mounted(lines: list[str]) -> dict[str, frozenset[str]]:
    """The options of each of `DISKS` that is a mount point; the last mount counts."""
    found = {}
    for line in lines:
        words = line.split()
        if len(words) >= 4 and words[1] in DISKS:
            found[words[1]] = frozenset(words[3].split(","))
    return found


def _space(root: Path, place: str) -> Iterator[Finding]:
    try:
        disk = os.statvfs(root / place.lstrip("/"))
    except OSError as problem:
        yield unknown(Check.HOST, HOST, "host:disk-unreadable", f"{place}: {problem.strerror}")
        return
    if disk.f_blocks and (disk.f_blocks - disk.f_bavail) / disk.f_blocks >= FULL:
        yield _degraded("host:disk-full", f"{place} has {disk.f_bavail} of {disk.f_blocks} blocks")


def _clock(subject: Subject) -> Iterator[Finding]:
    if subject.machine.root != Path("/") and not subject.machine.prefix:
        return
    status = clock_status()
    if status is None:
        yield unknown(Check.HOST, HOST, "host:clock-untold", "adjtimex does not answer")
    elif status & _UNSYNCHRONISED:
        yield _degraded("host:clock", "the kernel calls its clock unsynchronised")


def clock_status() -> int | None:
    """The status bits of adjtimex(2), asking without setting; None where it fails."""
    buffer = (ctypes.c_long * 64)()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(buffer)) < 0:
        return None
    return int(ctypes.cast(ctypes.byref(buffer, _STATUS_AT), ctypes.POINTER(ctypes.c_int))[0])


_STATUS_AT = 5 * ctypes.sizeof(ctypes.c_long)
"""Behind modes (padded), offset, freq, maxerror and esterror, in `struct timex`."""


def _degraded(code: str, said: str) -> Finding:
    name = FaultName.HOST_DEGRADED
    return fault(Check.HOST, HOST, name, code, Advice.HOLD, said, Severity.DEGRADED)
