"""Follows audit log and provider's journal as they grow, and keeps all writes of the run."""

from collections.abc import Callable
from pathlib import Path

from simulator.observer.transcript import Write, in_order, read_change, read_line, read_notice


class AuditTail:
    """Reads what was added since the last look; a line that is still being written waits."""

    def __init__(
        self, audit: Path, journal: Path | None = None, notices: Path | None = None
    ) -> None:
        """`journal` is the provider's, `notices` what a receiver wrote down, if there are any."""
        self._logs = [_Log(audit, read_line)]
        self._logs += [_Log(journal, read_change)] if journal else []
        self._logs += [_Log(notices, read_notice)] if notices else []
        self._writes: list[Write] = []
        self._ordered: list[Write] = []

    def new(self) -> list[Write]:
        """Writes that were added since the last call."""
        found = [write for log in self._logs for write in log.new()]
        self._writes += sorted(found, key=lambda write: write.at)
        return found

    @property
    def writes(self) -> list[Write]:
        """All writes so far, in the order in which they took place."""
        if len(self._ordered) != len(self._writes):
            self._ordered = in_order(self._writes)
        return self._ordered


class _Log:
    """One growing file of lines."""

    def __init__(self, path: Path, read: Callable[[str], Write | None]) -> None:
        self._path = path
        self._read = read
        self._offset = 0

    def new(self) -> list[Write]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            log.seek(self._offset)
            chunk = log.read()
        whole = chunk[: chunk.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [write for line in whole.decode().splitlines() if (write := self._read(line))]
