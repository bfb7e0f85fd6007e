"""An append-only file of committed writes: what survives SIGKILL.

A write is in the file (in the kernel's hands) before anybody hears of it. A last line that was cut
short never was: nobody heard of it. No fsync: the machine's own death is not what we emulate.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from simulator.apiserver.history import Change

REWRITE_ABOVE_BYTES = 256 << 20


class Journal:
    """The file; one JSON object a line: `{"type", "object"}`, or `{"version"}` at its head."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self.size = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """The whole lines of the file; a cut last one is taken away."""
        if not self._path.exists():
            return
        whole = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                yield from_json(line)
        os.truncate(self._path, whole)

    def open(self) -> None:
        """Start to append."""
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.size = os.fstat(self._file).st_size

    def append(self, change: Change) -> None:
        """Write one change down."""
        line = b'{"type":"%s","object":%s}\n' % (change.type.encode(), change.after.raw)
        self.size += len(line)
        _write_all(self._file, line)

    def rewrite(self, version: int, raws: Iterable[bytes]) -> None:
        """Replace the file by the state alone; the history before `version` is gone after it."""
        new = self._path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(b'{"version":%d}\n' % version)
            for raw in raws:
                file.write(b'{"type":"ADDED","object":%s}\n' % raw)
        new.replace(self._path)
        self.close()
        self.open()

    def close(self) -> None:
        """Append no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
