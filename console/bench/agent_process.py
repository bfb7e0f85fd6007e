"""The real agent as a process, for benchmarks: started, written to, scraped, and put away."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from console.bench.machine import core_seconds, ended_core_seconds
from probes.agent.run import ACCEPT_USER_SPACE
from probes.machine import HOST_EXEC, Machine

LIMIT = 300.0
"""Seconds after which a benchmark gives up waiting."""


@dataclass(slots=True)
class AgentProcess:
    """One agent. `lines` counts the records written to its log."""

    pid: int
    log: int
    port: int
    lines: int = 0
    boot: float = field(default_factory=time.monotonic)

    def say(self, texts: Sequence[str]) -> None:
        """The kernel prints these; waits while the log is full, as nobody but a FIFO would."""
        usec = int((time.monotonic() - self.boot) * 1e6)
        records = (f"4,{self.lines + n},{usec},-;{text}\n" for n, text in enumerate(texts))
        left = memoryview("".join(records).encode())
        while left:
            left = left[os.write(self.log, left) :]
        self.lines += len(texts)

    def figures(self) -> Mapping[str, float]:
        """A scrape: values by series as they are written."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
        pairs = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {series: float(value) for series, _, value in pairs}

    def rounds(self) -> int:
        """How many rounds of checks it has begun, as far as those that it has ended tell."""
        known = self.figures()
        if "gpumend_agent_round_age_seconds" not in known:
            return 0
        return int(sum(v for k, v in known.items() if 'checks_total{check="driver-list"' in k))

    def core_seconds(self) -> float:
        """Seconds of a core that it and its children that have ended spent so far."""
        return core_seconds(self.pid) + ended_core_seconds(self.pid)


@contextmanager
def running(
    machine: Machine, url: str, token: Path, every: int, environment: Mapping[str, str]
) -> Iterator[AgentProcess]:
    """An agent that has read its log to the end and ended its first round of checks."""
    command = [*_PROBE, "--node", "bench", "--root", str(machine.root)]
    command += ["--api-server", url, "--token-file", str(token)]
    command += ["--check-every", str(every), "--metrics-address", "127.0.0.1:0"]
    given = surroundings(machine, environment)
    if not Path(given[_COMPILED]).exists():
        once = [*_PROBE, "--once", "--root", str(machine.root)]
        subprocess.run(once, stdout=subprocess.DEVNULL, env=given)  # noqa: S603 - ourselves
    said = machine.root.parent / f"agent-{every}.log"
    with said.open("w") as errors:
        process = subprocess.Popen(command, stderr=errors, env=given)  # noqa: S603 - ourselves
    log = os.open(machine.kmsg, os.O_RDWR | os.O_APPEND)
    try:
        until(lambda: "msg=metrics" in said.read_text())
        agent = AgentProcess(process.pid, log, int(_port(said.read_text())))
        agent.say(["Linux version 6.8.0-1021"])
        until(lambda: agent.rounds() >= 1)
        yield agent
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        os.close(log)


def surroundings(machine: Machine, environment: Mapping[str, str]) -> dict[str, str]:
    """What a process of ours finds around it here: code that is compiled, as it is in our image.

    A checkout may be run so that every child compiles all that it imports.
    """
    inherited = {name: value for name, value in os.environ.items() if name != _COMPILE_NOTHING}
    compiled = {_COMPILED: str(machine.root.parent / "compiled")}
    return {**inherited, **environment, **compiled, HOST_EXEC: "", ACCEPT_USER_SPACE: "0"}


_COMPILED, _COMPILE_NOTHING = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"
_PROBE = (sys.executable, "-m", "console.main", "probe")


def until(so: Callable[[], object]) -> None:
    """Wait until something is so; raises TimeoutError where it never is."""
    deadline = time.monotonic() + LIMIT
    while not so():
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the agent did not get there in {LIMIT:.0f} s")
        time.sleep(0.1)


def _port(said: str) -> str:
    found = re.search(r"msg=metrics at=127\.0\.0\.1:(\d+)", said)
    return found[1] if found else "0"
