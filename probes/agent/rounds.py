"""A round of checks: one after the other, and whatever is slow is not waited for.

Checks of a sound machine run in turn, so that a round never takes more than one core. One that is
slow (its tool hangs) goes on in its own thread while the next ones run: it is told when it ends,
and the others keep their intervals. A check that has not ended in its time is unknown, and is not
begun again while it runs. One that fails by a mistake of ours is unknown too: it told nothing.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from fleet.finding import Finding
from fleet.part import HOST
from probes.checks.subject import tidy, unknown
from probes.log import say

PATIENCE = 1.0
"""Seconds for which a round waits for slow checks before it goes on beside them, in all."""
GLANCE = 0.05
"""Seconds that each check gets after that, so that quick ones still run in turn."""
LIMIT = 50.0
"""Seconds of a round. Tools have limits of their own (15 s and less): only what blocks this process
itself, such as a dead network file system, comes to this one."""

Check = Callable[[], tuple[Finding, ...]]


@dataclass(frozen=True, slots=True)
class Timed:
    """What one check found, and how long it took in seconds."""

    check: str
    findings: tuple[Finding, ...]
    seconds: float


@dataclass(slots=True)
class _Run:
    """One run of one check; whoever comes first, the check's end or its time limit, tells it."""

    check: str
    tell: Callable[[Timed], None]
    began: float = field(default_factory=time.monotonic)
    ended: threading.Event = field(default_factory=threading.Event)
    _told: threading.Lock = field(default_factory=threading.Lock)

    def start(self, check: Check) -> None:
        """Work in a thread of its own; where there is none to be had, nothing was looked at."""
        try:
            threading.Thread(target=self.work, args=(check,), daemon=True).start()
        except RuntimeError as problem:
            self.say((_broken(self.check, problem),))
            self.ended.set()

    def work(self, check: Check) -> None:
        """Whatever goes wrong inside is told: a round that lacks a finding would look well."""
        try:
            self.say(_answer(self.check, check))
        finally:
            self.ended.set()

    def say(self, findings: tuple[Finding, ...]) -> None:
        if self._told.acquire(blocking=False):
            self.tell(Timed(self.check, findings, time.monotonic() - self.began))


@dataclass(slots=True)
class Rounds:
    """The rounds of one machine. What did not end in its round is remembered, with its lock."""

    _overdue: dict[str, _Run] = field(default_factory=dict)
    _held: int | None = None

    def run(
        self,
        checks: Mapping[str, Check],
        tell: Callable[[Timed], None],
        locks: Iterable[int] = (),
    ) -> None:
        """Run these checks and tell of each as it ends; returns after `LIMIT` at the latest.

        `locks` are kept for as long as anything of the round runs.
        """
        self._forget()
        deadline, patience = time.monotonic() + LIMIT, PATIENCE
        runs = []
        for name, check in checks.items():
            if name in self._overdue:
                tell(Timed(name, (_late(name, "has not ended since a round before"),), 0.0))
                continue
            run = _Run(name, tell)
            runs.append(run)
            run.start(check)
            if not run.ended.wait(max(GLANCE, patience)):
                patience = 0.0
        self._wait(runs, deadline)
        if self._overdue and self._held is None:
            self._held = next((os.dup(each) for each in locks), None)

    def _wait(self, runs: list[_Run], deadline: float) -> None:
        for run in runs:
            if not run.ended.wait(max(0.0, deadline - time.monotonic())):
                self._overdue[run.check] = run
                run.say((_late(run.check, f"has not ended in {LIMIT:.0f} s"),))

    def _forget(self) -> None:
        """What has ended since may run again; with the last of it goes its lock."""
        self._overdue = {name: run for name, run in self._overdue.items() if not run.ended.is_set()}
        if not self._overdue and self._held is not None:
            with suppress(OSError):
                os.close(self._held)
            self._held = None


def _answer(name: str, check: Check) -> tuple[Finding, ...]:
    try:
        return check()
    except Exception as problem:  # noqa: BLE001  (whatever it is, it is told)
        return (_broken(name, problem),)


def _broken(check: str, problem: Exception) -> Finding:
    said = tidy(f"{type(problem).__name__}: {problem}")
    say("a check broke", check=check, problem=said)
    return unknown(check, HOST, "check:broken", f"the check itself failed with {said}")


def _late(check: str, said: str) -> Finding:
    return unknown(check, HOST, "check:overdue", f"the check itself {said}")
