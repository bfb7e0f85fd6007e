"""Ask the machine itself, where the log is not enough: in children, under the host lock.

Runs beside the loop in a thread of its own, since a query may take its whole limit. Each check is
told as it ends, so that one that hangs keeps no other's finding back. While a reset needs the GPU,
it stands aside: it asks nothing and starts no child.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fleet.finding import Finding
from fleet.part import HOST
from probes import checks, expectations
from probes.agent.counting import count_check, count_round
from probes.agent.figures import Figures
from probes.agent.rounds import Rounds, Timed
from probes.checks import left_overs
from probes.checks.subject import Subject, hung, ok, tidy
from probes.kept import Fields, read_kept
from probes.log import say
from probes.machine import Machine
from probes.parts import Gpu, Naming
from probes.processes import Heard

NAMES = "driver-list"
"""The check that reading the driver's own list of GPUs comes back at all."""
PROCESSES = "processes"
"""No check: it learns who runs on the GPUs, for what is found after it."""


@dataclass(frozen=True, slots=True)
class Sensed:
    """What a look has brought so far: the GPUs by address, and the findings of one check.

    `heard` are the processes on the GPUs, once a round and before what NVML says of the GPUs, where
    they could be listed;
    `round` is there once, at the end of a round of all checks: everything that they found.
    `kept` is what the next rounds must know, at the end of a look with checks.
    """

    gpus: dict[str, Gpu]
    findings: tuple[Finding, ...] = ()
    heard: Heard | None = None
    round: tuple[Finding, ...] | None = None
    kept: Fields | None = None


Tell = Callable[[Sensed], None]


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
    """One look at a time; `key` is that of the parts' identities, `kept` from a life before."""

    machine: Machine
    key: bytes = b""
    figures: Figures = field(default_factory=Figures)
    kept: Fields = field(default_factory=dict)
    _subject: Subject = field(init=False)
    _rounds: Rounds = field(default_factory=Rounds, init=False)
    _heard: Heard = field(default_factory=Heard, init=False)

    def __post_init__(self) -> None:
        naming, kept = Naming({}, self.machine.root), read_kept(self.kept)
        self._subject = Subject(self.machine, naming, kept=kept)

    def look(
        self, gpus: dict[str, Gpu], examine: bool, tell: Tell, only: Collection[str] = ()
    ) -> bool:
        """Learn the names of the GPUs and, where asked, run every passive check.

        False while a reset needs the GPU. `gpus` are those known before; each check is told as it
        ends, and the round when it is over. With `only`, no more than these checks are run, which
        is no round. Raises OSError where the lock cannot be had.
        """
        with shared(self.machine.lock) as descriptor:
            if descriptor is None:
                return False
            subject = self._subject
            subject.naming, subject.keep_open = Naming(gpus, self.machine.root), (descriptor,)
            subject.begin()
            found: list[Timed] = []

            def ended(timed: Timed) -> None:
                found.append(timed)
                count_check(self.figures, timed)
                heard = self._heard if timed.check == PROCESSES and not timed.findings else None
                tell(Sensed(dict(subject.naming.gpus), timed.findings, heard))

            whole = examine and not only
            first = {NAMES: self._name, **({PROCESSES: self._hear} if whole else {})}
            passive = [each for each in checks.PASSIVE if examine and (not only or each in only)]
            running = {name: partial(checks.one, name, subject) for name in passive}
            self._rounds.run({**first, **running}, ended, (descriptor,))
            if examine:
                self._remember(subject.counts)
                everything = tuple(each for one in found for each in one.findings)
                round_ = everything if whole else None
                tell(Sensed(dict(subject.naming.gpus), round=round_, kept=subject.kept.fields()))
            if whole:
                count_round(self.figures, found, subject.tools)
            return True

    def _name(self) -> tuple[Finding, ...]:
        seen = self._subject.name_gpus(self.key)
        return (hung(NAMES, "reading the driver's list of GPUs") if seen.hung else ok(NAMES, HOST),)

    def _hear(self) -> tuple[Finding, ...]:
        self._heard = left_overs.listed(self._subject)
        return ()

    def _remember(self, counts: Mapping[str, int]) -> None:
        """Keep how many GPUs and adapters this machine has, where that is more than ever before."""
        for kind, count in counts.items():
            with suppress(OSError):
                expectations.remember(self.machine, kind, count)


@dataclass(slots=True)
class SensesThread:
    """Looks when asked; at most one look is asked for and under way.

    `owed_since` is when a look was asked for (monotonic seconds), None once one has been had: one
    that failed, or stood aside for a reset, was none.
    """

    senses: Senses
    deliver: Tell
    owed_since: float | None = None
    _asked: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _what: tuple[dict[str, Gpu], bool, Collection[str]] = field(default=({}, False, ()))

    def ask(self, gpus: dict[str, Gpu], examine: bool, only: Collection[str] = ()) -> None:
        """Ask for a look. Never blocks."""
        self._what = (dict(gpus), examine, only)
        self.owed_since = self.owed_since or time.monotonic()
        self._asked.set()

    def stop(self) -> None:
        """End when the look under way is over, which is bounded."""
        self._stop.set()
        self._asked.set()

    def run(self) -> None:
        """Until stopped. A look that fails by a mistake of ours must not end those after it."""
        while True:
            self._asked.wait()
            if self._stop.is_set():
                return
            self._asked.clear()
            try:
                gpus, examine, only = self._what
                if self.senses.look(gpus, examine, self.deliver, only):
                    self.owed_since = None
            except Exception as problem:  # noqa: BLE001  (said; the look stays owed)
                say("a look at the machine failed", problem=tidy(repr(problem)))
