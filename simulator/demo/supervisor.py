"""Starts the demo's programs, waits until each is ready, and leaves none behind.

A program's output goes to its log; what it said last is shown when it fails. One that ends without
being asked is started again, as a Deployment would, a few times.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simulator.kubelet.container import die_with_parent

STOP_SECONDS = 5.0
RESTARTS = 5
RESTART_PAUSE_SECONDS = 0.5
TAIL_LINES = 15


class NotStarted(Exception):
    """A program did not get ready; the message holds what it said last."""


@dataclass(frozen=True, slots=True)
class Program:
    """`ready` is in the line that says that it works; `within` is the limit for it in seconds."""

    name: str
    argv: Sequence[str]
    ready: str
    env: Mapping[str, str] = field(default_factory=dict)
    within: float = 120.0


class Running:
    """One program and its present process."""

    def __init__(self, program: Program, log: Path, tell: Callable[[str], None]) -> None:
        self.program = program
        self.log = log
        self.first_ready_line = ""
        self._tell = tell
        self._process: asyncio.subprocess.Process | None = None
        self._tending: asyncio.Task[None] | None = None
        self._wanted = False
        self._restarts = 0

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        self._wanted = True
        ready = asyncio.Event()
        await self._spawn()
        self._tending = asyncio.create_task(self._tend(ready))
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait(
                {waiting, self._tending},
                timeout=self.program.within,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            waiting.cancel()
        if not ready.is_set():
            await self.stop()
            raise NotStarted(f"{self.program.name} is not ready. It said last:\n{self.tail()}")

    def kill(self) -> None:
        """SIGKILL, now; it stays down until `start`."""
        self._wanted = False
        self._signal(signal.SIGKILL)

    async def stop(self) -> None:
        """Ask it to end; insist after a while."""
        self._wanted = False
        self._signal(signal.SIGTERM)
        if self._process:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        self._signal(signal.SIGKILL)
        if self._tending:
            await asyncio.gather(self._tending, return_exceptions=True)

    async def ended(self) -> None:
        """Wait until its process is gone and nobody tends it: then it may be started again."""
        if self._tending:
            await asyncio.gather(self._tending, return_exceptions=True)

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])

    async def _spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self.program.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **self.program.env},
            start_new_session=True,
            preexec_fn=die_with_parent,
            limit=1 << 20,
        )

    async def _tend(self, ready: asyncio.Event) -> None:
        """Copy its output, and start it again where it ended unasked."""
        while True:
            assert self._process
            assert self._process.stdout
            await self._copy(self._process.stdout, ready)
            status = await self._process.wait()
            if not self._wanted or not ready.is_set():
                return
            self._restarts += 1
            if self._restarts > RESTARTS:
                self._tell(f"{self.program.name} ended {self._restarts} times: given up")
                return
            self._tell(f"{self.program.name} ended by itself (status {status}): started again")
            await asyncio.sleep(RESTART_PAUSE_SECONDS)
            if self._unwanted():
                return
            await self._spawn()
            if self._unwanted():  # stopped while it was being started
                self._signal(signal.SIGKILL)

    def _unwanted(self) -> bool:
        return not self._wanted

    async def _copy(self, stream: asyncio.StreamReader, ready: asyncio.Event) -> None:
        with self.log.open("ab") as log:
            while line := await _line(stream):
                log.write(line)
                log.flush()
                if self.program.ready in line.decode(errors="replace"):
                    self.first_ready_line = self.first_ready_line or line.decode().strip()
                    ready.set()

    def _signal(self, number: signal.Signals) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


class Supervisor:
    """All programs of one run, an async context manager that ends them in reverse order."""

    def __init__(self, logs: Path, tell: Callable[[str], None]) -> None:
        self._logs = logs
        self._tell = tell
        self._running: dict[str, Running] = {}

    async def __aenter__(self) -> "Supervisor":
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        for running in reversed(self._running.values()):
            await running.stop()

    async def start(self, program: Program) -> Running:
        """Start a program and wait until it is ready; raise NotStarted with what it said."""
        running = Running(program, self._logs / f"{program.name}.log", self._tell)
        self._running[program.name] = running
        await running.start()
        return running

    def __getitem__(self, name: str) -> Running:
        return self._running[name]

    def tails(self) -> str:
        """The last words of every program."""
        return "\n".join(f"{name}:\n{each.tail()}" for name, each in self._running.items())


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # a line longer than the limit: its rest comes as lines of its own
        return b"\n"
