"""The thread that reads the log and hands it on in batches. What the records say is not known here.

What takes the batches is bounded: when it is behind, records wait in the kernel's own buffer.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from probes.kmsg import Source, open_source
from probes.machine import Machine

BATCH = 256
"""Records a batch; about 10 ms of work."""
WATCH = 2.0
"""Seconds between two signs of life while the log is silent; a record ends the wait at once."""
REOPEN_LIMIT = 5.0
"""Seconds between two tries to open a log that cannot be read, at most."""


@dataclass(frozen=True, slots=True)
class Came:
    """From the reader: records of opening number `opening`, none at its end, or a problem."""

    opening: int
    raw: tuple[bytes, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class LogReader:
    """Reads the log in a thread. `beat` is when it last showed life (monotonic seconds).

    `deliver` waits for room, but not for long; False says that there was none.
    """

    machine: Machine
    deliver: Callable[[Came], bool]
    stop: threading.Event
    beat: float = field(default_factory=time.monotonic)
    opening: int = 0
    _again: threading.Event = field(default_factory=threading.Event)

    def reopen(self) -> int:
        """Read the log from its start; returns the number of the opening that will do so."""
        wanted = self.opening + 1
        self._again.set()
        return wanted

    def run(self) -> None:
        """Until stopped; a log that cannot be read is tried again, ever more slowly."""
        pause = 0.1
        while not self.stop.is_set():
            self._again.clear()
            self.opening += 1
            try:
                source = open_source(self.machine.kmsg)
                with contextlib.closing(source):
                    self._read(source)
                pause = 0.1
            except OSError as problem:
                self._put(Came(self.opening, problem=f"{self.machine.kmsg}: {problem.strerror}"))
                self.stop.wait(pause)
                pause = min(2 * pause, REOPEN_LIMIT)

    def _read(self, source: Source) -> None:
        at_end = False
        while not (self.stop.is_set() or self._again.is_set()):
            self.beat = time.monotonic()
            raw = source.take(BATCH)
            for start in range(0, len(raw), BATCH):
                self._put(Came(self.opening, tuple(raw[start : start + BATCH])))
            if raw:
                at_end = False
                continue
            if not at_end:
                at_end = True
                self._put(Came(self.opening))
            source.wait(WATCH)

    def _put(self, item: Came) -> None:
        while not self.stop.is_set():
            self.beat = time.monotonic()
            if self.deliver(item):
                return
