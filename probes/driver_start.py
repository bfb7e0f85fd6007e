"""When the driver was loaded, and which one it is. Reading only.

The kernel keeps no time of a module's load, and files of sysfs and proc are as old as the first
look at them. But the driver starts kernel threads of its own when it is loaded, and threads have a
start. Where those cannot be seen (a machine in a container), a driver that says something else of
itself than in the last round was loaded since.
"""

from pathlib import Path

from probes.processes import Process, read_process

THREAD = "nv_queue"
"""What the driver calls the threads that it starts with itself, and ends with itself."""
KERNEL = 2
"""The parent of every kernel thread: nobody else can be its child, whatever he calls himself."""
_MARKS = ("sys/module/nvidia/srcversion", "proc/driver/nvidia/version")
_MARK_LIMIT = 400


def loader(root: Path, known: Process | None = None) -> Process | None:
    """The driver's own thread, whose start is the driver's; None where nobody can see one.

    One that is `known` from before is looked at first: going through all processes takes a while.
    """
    if known is not None and _of_driver(root, known.pid) == known:
        return known
    try:
        pids = [int(each.name) for each in (root / "proc").iterdir() if each.name.isdigit()]
    except OSError:
        return None
    found = (process for pid in pids if (process := _of_driver(root, pid)) is not None)
    return min(found, key=lambda each: each.started, default=None)


def mark(root: Path) -> str:
    """What the driver says of itself; empty where there is none."""
    return "\n".join(filter(None, (_text(root / each)[:_MARK_LIMIT] for each in _MARKS)))


def _of_driver(root: Path, pid: int) -> Process | None:
    folder = root / "proc" / str(pid)
    if _text(folder / "comm") != THREAD:
        return None
    fields = _text(folder / "stat").rpartition(")")[2].split()
    ours = len(fields) > 1 and fields[1] == str(KERNEL)
    return read_process(root, pid) if ours else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
