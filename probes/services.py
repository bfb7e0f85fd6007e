"""Which services should run on this machine, and whether they do: by systemd's links and `/proc`.

Reading only, and no more than names: a service that hangs runs all the same.
"""

from collections.abc import Iterable
from pathlib import Path

_WANTS = "etc/systemd/system/multi-user.target.wants"
_NAME_LIMIT = 15
"""Characters that the kernel keeps of a process's name."""


def wanted(root: Path, units: Iterable[str]) -> bool:
    """Whether systemd starts one of these units with the machine."""
    return any((root / _WANTS / unit).is_symlink() for unit in units)


def runs(root: Path, program: str) -> bool:
    """Whether a process of this name is there; one that ends meanwhile is not."""
    name = program[:_NAME_LIMIT]
    for process in (root / "proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text("utf-8", "replace").strip() == name:
                return True
        except OSError:
            continue
    return False
