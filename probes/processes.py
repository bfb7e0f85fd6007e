"""What `/proc` says of a process: when it started, whose it is, what it is called. Reading only.

Ids in kernel lines and from the driver are those of the first PID namespace. Where the machine's
`/proc` is another's (a node inside a container), an id there is somebody else: nothing is told.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fleet.part import Part
from probes.cgroup import TEXT_LIMIT, Owner, owner_of

_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREADS = "kthreadd"
"""What the second process of the first PID namespace is called, and no other's."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this boot. Its id may come again, its start (seconds since boot) may not."""

    pid: int
    started: float
    owner: Owner | None
    name: str = ""


Running = tuple[Process, Part]
"""A process, and a GPU that it has open."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the driver just said: the processes on the GPUs `told`; of others it said nothing."""

    told: frozenset[Part] = frozenset()
    running: tuple[Running, ...] = ()


def first_namespace(root: Path) -> bool:
    """Whether `/proc` of this machine is the kernel's own, so that ids there are the kernel's."""
    return _read(root / "proc/2/comm") == _KERNEL_THREADS


def heard_here(root: Path) -> bool:
    """Whether ids that the driver tells us are those of this `/proc`: it speaks to each namespace
    in its own. A folder that is no `/proc` of ours has the ids that its own tools tell."""
    try:
        return os.readlink(root / "proc/self") == str(os.getpid())
    except OSError:
        return True


def read_process(root: Path, pid: int) -> Process | None:
    """A process that runs; None where there is none, or nobody may look."""
    folder = root / "proc" / str(pid)
    try:
        head, _, tail = _read(folder / "stat").rpartition(")")
        started = int(tail.split()[19]) / _TICKS
    except (ValueError, IndexError):
        return None
    return Process(pid, started, owner_of(_read(folder / "cgroup")), head.partition("(")[2])


def _read(path: Path) -> str:
    """The start of a file, empty where it cannot be read: a process may end at any moment."""
    try:
        with path.open("rb") as file:
            return file.read(TEXT_LIMIT).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""
