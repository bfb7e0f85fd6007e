"""Disposable children: the only way in which we run a tool that may hang inside the driver.

A child in uninterruptible sleep cannot be killed, and waiting for it, or for the end of its pipes
(a grandchild may hold them), would hang us with it. So every wait here is bounded, and a child that
outlives its limit is left behind, remembered, and is itself the finding.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

OUTPUT_LIMIT = 256 * 1024
"""Bytes kept of each stream; the rest is read and dropped, so that the child never blocks on us."""
GRACE = 0.5
"""Seconds between asking a child to end (TERM) and leaving it behind."""
NO_PROGRAM = (126, 127)
"""Exit statuses of what cannot be started, as shells say it."""
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a child.

    `status` is its exit status (negative: the signal that ended it), None while it has not ended.
    `hung` is True when it did not end within its limit; `waiting` when the one before still runs
    and nothing was started.
    """

    status: int | None
    output: str = ""
    errors: str = ""
    hung: bool = False
    waiting: bool = False

    @property
    def no_program(self) -> bool:
        """Whether there was nothing to run, or nothing that may be run."""
        return self.status in NO_PROGRAM


@dataclass(slots=True)
class Tool:
    """One tool, with at most one outstanding child, whoever asks. `abandoned` children so far."""

    name: str
    abandoned: int = 0
    _left: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)
    _kill_at: float = 0.0
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def run(
        self,
        command: Sequence[str],
        limit: float,
        keep_open: Sequence[int] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        grace: float = GRACE,
    ) -> Ended:
        """Run `command` for at most `limit` seconds and a grace; never raises for what it does.

        A child left behind by an earlier run blocks new ones until it is gone; it gets a KILL only
        when it has had `limit` seconds more, since killing a merely slow reader of the driver
        harms the GPU. `keep_open` are descriptors (locks) that live as long as the child,
        `environment` is added to our own, `grace` is how long a child may tidy up after TERM.
        Threads wait for their turn, which is bounded like a run.
        """
        with self._turn:
            return self._run(command, limit, keep_open, environment, grace)

    @property
    def outstanding(self) -> int | None:
        """The process id of the child left behind, if it still lives. Asking does nothing to it."""
        left = self._left
        return None if left is None or left.poll() is not None else left.pid

    def _run(
        self,
        command: Sequence[str],
        limit: float,
        keep_open: Sequence[int],
        environment: Mapping[str, str],
        grace: float,
    ) -> Ended:
        if not self._settled():
            return Ended(None, hung=True, waiting=True)
        try:
            child = _start(command, keep_open, environment)
        except OSError as problem:
            return Ended(127, errors=f"{command[0]}: {problem.strerror}")
        with _Streams(child) as streams:
            ended = streams.follow(time.monotonic() + limit)
            if not ended:
                _signal(child, signal.SIGTERM)
                streams.follow(time.monotonic() + grace)
            status = child.poll()
            if status is None:
                self._left, self._kill_at = child, time.monotonic() + limit
                self.abandoned += 1
            return Ended(status, *streams.texts(), hung=not ended)

    def _settled(self) -> bool:
        if self._left is None or self._left.poll() is not None:
            self._left = None
            return True
        if time.monotonic() >= self._kill_at:
            _signal(self._left, signal.SIGKILL)
        return False


def _start(
    command: Sequence[str], keep_open: Sequence[int], environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - fixed words and PCI addresses, never a shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=keep_open,
        env={**os.environ, "LC_ALL": "C", **environment},
    )


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    """To the whole session: what the tool started ends with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


class _Streams:
    """The pipes and the exit of one child, read as they come, never to their end."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        self._pipes = (child.stdout, child.stderr)
        self._kept: dict[int, bytearray] = {pipe.fileno(): bytearray() for pipe in self._pipes}
        self._exit = os.pidfd_open(child.pid)
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> "_Streams":
        for number in self._kept:
            os.set_blocking(number, False)
            self._selector.register(number, selectors.EVENT_READ)
        self._selector.register(self._exit, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        os.close(self._exit)
        for pipe in self._pipes:
            pipe.close()

    def follow(self, deadline: float) -> bool:
        """Read until the child ends (True) or the deadline passes (False)."""
        while (left := deadline - time.monotonic()) > 0:
            ready = {key.fd for key, _ in self._selector.select(left)}
            for number in ready - {self._exit}:
                self._take(number)
            if self._exit in ready:
                for number in self._kept:
                    self._take(number)
                return True
        return False

    def texts(self) -> tuple[str, str]:
        """What was kept of standard output and standard error."""
        out, err = (kept.decode("utf-8", "replace") for kept in self._kept.values())
        return out, err

    def _take(self, number: int) -> None:
        """At most one pipe full: a grandchild that never stops writing must not hold us."""
        for _ in range(4):
            try:
                chunk = os.read(number, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(number)
                return
            self._kept[number] += chunk[: OUTPUT_LIMIT - len(self._kept[number])]
