"""Follow the kernel log: bytes of `/dev/kmsg` in, records in order out, nothing twice.

The device hands out one record a read, says EPIPE when records were overwritten unread, and EINVAL
when the buffer is too small. A regular file and a FIFO of the same records stand in for it in tests
and on simulated machines (a FIFO cannot be read again: what a killed reader took from it is gone).
What a record means is not known here.
"""

import errno
import os
import select
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from probes.kernel_log.framing import Record, parse_record

BUFFER = 8_192
BUFFER_LIMIT = 131_072
"""Bytes of one record; the kernel's own limit is far below."""
_TAIL_PERIOD = 0.1
"""Seconds between two looks at a regular file, which cannot be waited for."""


class Source(Protocol):
    """Where records come from. Methods raise OSError when it can no longer be read."""

    def take(self, limit: int) -> list[bytes]:
        """At most `limit` records that are there now; empty when there are none."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when something may have come, at the latest after `seconds`."""
        ...

    def close(self) -> None:
        """Give the descriptor back."""
        ...


def open_source(path: Path) -> Source:
    """Open the device, FIFO or file at `path`, at its beginning; raises OSError."""
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode):
        return Device(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    if stat.S_ISFIFO(mode):
        return Fifo(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    return RegularFile(path)


class Device:
    """The real thing, or whatever reads like it (`read`, one record a call)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = BUFFER

    def take(self, limit: int) -> list[bytes]:
        """Records that are there; an overrun is passed over, the gap in the sequence counts it."""
        taken: list[bytes] = []
        overruns = 0
        while len(taken) < limit:
            try:
                record = os.read(self._descriptor, self._buffer)
            except BlockingIOError:
                break
            except OSError as problem:
                if problem.errno == errno.EPIPE and overruns < limit:
                    overruns += 1
                elif problem.errno == errno.EINVAL and self._buffer < BUFFER_LIMIT:
                    self._buffer *= 2
                elif taken:
                    break
                else:
                    raise
                continue
            if not record:
                break
            taken.append(record)
        return taken

    def wait(self, seconds: float) -> None:
        """Poll the device."""
        _poll(self._descriptor, seconds)

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)


class _Lines:
    """Bytes to whole lines; a line beyond the limit is dropped, its end is found again."""

    def __init__(self) -> None:
        self._rest = b""
        self._overlong = False

    def split(self, chunk: bytes) -> Iterator[bytes]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            if not self._overlong and line:
                yield line
            self._overlong = False
        if len(self._rest) > BUFFER_LIMIT:
            self._rest, self._overlong = b"", True


class Fifo:
    """A FIFO, opened for writing too, so that it does not end with its last writer."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines = _Lines()

    def take(self, limit: int) -> list[bytes]:
        """The lines of one read; `limit` only bounds the read."""
        try:
            chunk = os.read(self._descriptor, max(BUFFER, 64 * limit))
        except BlockingIOError:
            return []
        return list(self._lines.split(chunk))

    def wait(self, seconds: float) -> None:
        """Poll the FIFO."""
        _poll(self._descriptor, seconds)

    def close(self) -> None:
        """Close the FIFO."""
        os.close(self._descriptor)


class RegularFile:
    """A file that grows; cut short or replaced (a simulated boot), it is read from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        self._lines = _Lines()

    def take(self, limit: int) -> list[bytes]:
        """The lines of one read; `limit` only bounds the read."""
        taken = list(self._lines.split(os.read(self._descriptor, max(BUFFER, 64 * limit))))
        if not taken and self._begins_anew():
            return self.take(limit)
        return taken

    def wait(self, seconds: float) -> None:
        """Wait for the next look: there is no event to wait for in the standard library."""
        time.sleep(min(seconds, _TAIL_PERIOD))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _begins_anew(self) -> bool:
        ours, theirs = os.fstat(self._descriptor), os.stat(self._path)
        at = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino) and theirs.st_size >= at:
            return False
        os.close(self._descriptor)
        self._descriptor, self._lines = os.open(self._path, os.O_RDONLY), _Lines()
        return theirs.st_size > 0


def _poll(descriptor: int, seconds: float) -> None:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.poll(seconds * 1_000)


FIRST_SEQUENCE = 1
"""The highest number that the first record of a boot may have; above it, some are missing."""


@dataclass(slots=True)
class Cursor:
    """How far the log of one boot was handled, and what was missed on the way.

    `sequence` is that of the last record handled, `first` that of the first one ever seen; both -1
    before it. `lost` counts records that were overwritten before we read them, `garbled` what was
    no record, `foreign` what user space wrote, `behind` the records since the last new one that
    had a number already handled.
    """

    boot_id: str
    sequence: int = -1
    first: int = -1
    lost: int = 0
    garbled: int = 0
    foreign: int = 0
    behind: int = 0

    @property
    def whole(self) -> bool:
        """Whether the log was seen from the start of the boot."""
        return 0 <= self.first <= FIRST_SEQUENCE

    def admit(self, sequence: int) -> bool:
        """Move to `sequence`; False if it, or a higher one, was handled before."""
        if sequence <= self.sequence:
            self.behind += 1
            return False
        if self.first < 0:
            self.first = sequence
        else:
            self.lost += sequence - self.sequence - 1
        self.sequence, self.behind = sequence, 0
        return True


@dataclass(frozen=True, slots=True)
class Followed:
    """A record of the kernel; `new` is False for one that was handled before a restart.

    `line` is what a reader of the kernel's log takes, without device tags.
    """

    record: Record
    line: bytes
    new: bool


def follow(raw: list[bytes], cursor: Cursor, accept_user_space: bool = False) -> list[Followed]:
    """The kernel's own records among `raw`; the rest only moves or marks the cursor.

    Records of user space are no evidence: anybody may write them. `accept_user_space` is for tests.
    """
    followed = []
    for each in raw:
        try:
            record = parse_record(each)
        except ValueError:
            cursor.garbled += not each.startswith(b" ")
            continue
        new = cursor.admit(record.sequence)
        if record.from_user_space and not accept_user_space:
            cursor.foreign += new
            continue
        line = _as_kernels(record) if record.from_user_space else each.partition(b"\n")[0]
        followed.append(Followed(record, line, new))
    return followed


def _as_kernels(record: Record) -> bytes:
    """A record of user space, let in by the test switch, as if the kernel had written it."""
    head = f"{record.level},{record.sequence},{record.usec},-;"
    return head.encode() + record.text.encode()
