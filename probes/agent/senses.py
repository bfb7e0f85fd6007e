"""Ask the machine itself, where the log is not enough: in children, under the host lock.

Runs beside the loop in a thread of its own, since a query may take its whole limit. While a reset
needs the GPU, it stands aside: it asks nothing and starts no child.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fleet.finding import Finding
from fleet.part import HOST
from probes import checks, expectations
from probes.checks import left_overs
from probes.checks.subject import Subject, hung, ok
from probes.machine import Machine
from probes.parts import Gpu, Naming
from probes.processes import Heard

NAMES = "driver-list"
"""The check that reading the driver's own list of GPUs comes back at all."""


@dataclass(frozen=True, slots=True)
class Sensed:
    """What one look brought: the GPUs by address, findings, whether all checks were run, and the
    processes on the GPUs."""

    gpus: dict[str, Gpu]
    findings: tuple[Finding, ...]
    proof: bool
    heard: Heard = field(default_factory=Heard)


@contextmanager
def shared(lock: Path) -> Iterator[int | None]:
    """The host lock, shared; None while a reset holds it. Children inherit the descriptor."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class Senses:
    """One look at a time; `key` is that of the parts' identities."""

    machine: Machine
    key: bytes = b""
    _subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        self._subject = Subject(self.machine, Naming({}, self.machine.root))

    def look(self, gpus: dict[str, Gpu], examine: bool) -> Sensed | None:
        """Learn the names of the GPUs and, where asked, run every passive check.

        None while a reset needs the GPU. `gpus` are those known before.
        """
        with shared(self.machine.lock) as descriptor:
            if descriptor is None:
                return None
            subject = self._subject
            subject.naming, subject.keep_open = Naming(gpus, self.machine.root), (descriptor,)
            seen = subject.name_gpus(self.key)
            says = (
                hung(NAMES, "reading the driver's list of GPUs") if seen.hung else ok(NAMES, HOST)
            )
            findings = checks.run(checks.PASSIVE, subject) if examine else ()
            heard = left_overs.listed(subject) if examine else Heard()
            if examine:
                self._remember(subject.counts)
            return Sensed(dict(subject.naming.gpus), (says, *findings), examine, heard)

    def _remember(self, counts: Mapping[str, int]) -> None:
        """Keep how many GPUs and adapters this machine has, where that is more than ever before."""
        for kind, count in counts.items():
            with suppress(OSError):
                expectations.remember(self.machine, kind, count)


@dataclass(slots=True)
class SensesThread:
    """Looks when asked; at most one look is asked for and under way."""

    senses: Senses
    deliver: Callable[[Sensed], None]
    _asked: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _what: tuple[dict[str, Gpu], bool] = field(default=({}, False))

    def ask(self, gpus: dict[str, Gpu], examine: bool) -> None:
        """Ask for a look. Never blocks."""
        self._what = (dict(gpus), examine)
        self._asked.set()

    def stop(self) -> None:
        """End when the look under way is over, which is bounded."""
        self._stop.set()
        self._asked.set()

    def run(self) -> None:
        """Until stopped."""
        while True:
            self._asked.wait()
            if self._stop.is_set():
                return
            self._asked.clear()
            try:
                sensed = self.senses.look(*self._what)
            except OSError:
                continue
            if sensed is not None:
                self.deliver(sensed)
