"""The kernel log of a machine: a file of `/dev/kmsg` records, begun anew at each boot."""

from pathlib import Path

ERROR, INFO = 3, 6
"""Priorities of facility 0, the kernel: what user space writes would be 8 or more."""


class KernelLog:
    """Appends records to one file; the caller holds the machine's lock."""

    def __init__(self, path: Path) -> None:
        """`path` is `<root>/dev/kmsg`."""
        self._path = path

    def begin(self, lines: tuple[str, ...]) -> None:
        """Start the log of a new boot: another file, sequence numbers from 0."""
        fresh = self._path.with_name(".kmsg-next")
        fresh.write_text(_records(0, 0, INFO, lines))
        fresh.replace(self._path)

    def lose(self) -> None:
        """Make it unreadable: opening it fails, as where the device node is gone."""
        self._path.unlink()

    def append(self, lines: tuple[str, ...], uptime: float, priority: int = ERROR) -> None:
        """Print `lines` `uptime` seconds after the boot."""
        if not self._path.exists():
            return
        with self._path.open("r+") as log:
            sequence = sum(1 for _ in log)
            log.write(_records(sequence, uptime, priority, lines))


def _records(sequence: int, uptime: float, priority: int, lines: tuple[str, ...]) -> str:
    return "".join(
        f"{priority},{sequence + offset},{int(uptime * 1e6) + offset},-;{line}\n"
        for offset, line in enumerate(lines)
    )
