"""Follows the audit log as it grows, and keeps all writes of the run."""

from pathlib import Path

from simulator.observer.transcript import Write, in_order, read_line


class AuditTail:
    """Reads what was added since the last look; a line that is still being written waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._writes: list[Write] = []

    def new(self) -> list[Write]:
        """Writes that were added since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            log.seek(self._offset)
            chunk = log.read()
        whole = chunk[: chunk.rfind(b"\n") + 1]
        self._offset += len(whole)
        found = [write for line in whole.decode().splitlines() if (write := read_line(line))]
        self._writes += found
        return found

    @property
    def writes(self) -> list[Write]:
        """All writes so far, in the order in which they took place."""
        return in_order(self._writes)
