"""Threads that sleep uninterruptibly inside the GPU driver, by `/proc`. Reading only.

Every thread is looked at, not only leaders: a process may look well while one of its threads hangs.
Where the kernel tells nobody in which function a thread sleeps, an open GPU device decides.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

THREADS_LIMIT = 65_536
_IN_DRIVER = ("nv", "uvm", "os_acquire", "_raw_nv")
_NOT_IN_DRIVER = ("nvme",)
"""`nvme` is a disk."""
_DEVICE = "/dev/nvidia"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of this boot: its id may come again, its start may not."""

    id: str
    started: str
    name: str
    where: str


def threads_in_driver(root: Path) -> tuple[Thread, ...]:
    """Those that are asleep in the driver just now; what ends meanwhile is left out."""
    found = (thread for task in _tasks(root) if (thread := _asleep(task)) is not None)
    return tuple(found)


def _tasks(root: Path) -> Iterator[Path]:
    seen = 0
    for process in (root / "proc").glob("[0-9]*"):
        try:
            tasks = os.listdir(process / "task")
        except OSError:
            continue
        for task in tasks:
            seen += 1
            if seen > THREADS_LIMIT:
                return
            yield process / "task" / task


def _asleep(task: Path) -> Thread | None:
    try:
        stat = (task / "stat").read_text("utf-8", "replace")
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        if fields[0] != "D":
            return None
        where = _where(task)
    except (OSError, IndexError):
        return None
    return Thread(task.name, fields[19], head.partition("(")[2][:32], where) if where else None


def _where(task: Path) -> str:
    """The function that it sleeps in, if it is the driver's; else the GPU device that it holds."""
    function = (task / "wchan").read_text("ascii", "replace").strip()
    if function not in ("", "0"):
        ours = function.startswith(_IN_DRIVER) and not function.startswith(_NOT_IN_DRIVER)
        return function[:64] if ours else ""
    for descriptor in (task / "fd").iterdir():
        try:
            if os.readlink(descriptor).startswith(_DEVICE):
                return os.readlink(descriptor)[:64]
        except OSError:
            continue
    return ""
