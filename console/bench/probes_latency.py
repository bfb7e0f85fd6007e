"""From a kernel line to the patched condition, quiet and beside a storm.

A GPU breaks, and its driver takes it back, in turn: each is news. What is timed ends when a watch
of the Node brings the condition, so it is a little more than the agent's own time.
"""

import contextlib
import statistics
import threading
import time
from typing import Any

from console.bench.agent_process import AgentProcess
from console.bench.probes_server import Server

SAMPLES, STORM_LINES = 40, 50_000
APART = 1.2
"""Seconds between two measured lines: more than between two patches."""
PATIENCE = 20.0
BREAKS = "NVRM: Xid (PCI:0000:53:00): 95, pid=5171, Uncontained: FBHUB. RST: Yes, D-RST: No"
IS_WELL = (
    "NVRM: Xid (PCI:0000:53:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required)"
    " to 0x0 (None)"
)
WORDS = "part=gpu:0 "
BURST = 64
"""Lines that the storm prints at once."""


def quiet(agent: AgentProcess, server: Server, samples: int = SAMPLES) -> list[float]:
    """Milliseconds from each line to its condition, sorted."""
    free = contextlib.nullcontext()
    return sorted(_sample(agent, server, number, free) for number in range(samples))


def in_storm(
    agent: AgentProcess, server: Server, samples: int = SAMPLES, lines: int = STORM_LINES
) -> list[float]:
    """The same, while Xids of applications and of one broken GPU are printed all the while."""
    over, writing = threading.Event(), threading.Lock()
    pace = lines / (samples * APART)

    def storm() -> None:
        began, printed = time.monotonic(), 0
        while not over.is_set() and printed < lines:
            with writing:
                agent.say([_noise(printed + n) for n in range(BURST)])
            printed += BURST
            over.wait(max(0.0, began + printed / pace - time.monotonic()))

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        return sorted(_sample(agent, server, number, writing) for number in range(samples))
    finally:
        over.set()
        thread.join()


def summed(found: list[float]) -> dict[str, Any]:
    """The median and the 99th percentile, in milliseconds."""
    worst = found[min(len(found) - 1, int(len(found) * 0.99))]
    return {"p50_ms": round(statistics.median(found), 1), "p99_ms": round(worst, 1)}


def _sample(
    agent: AgentProcess,
    server: Server,
    number: int,
    writing: "threading.Lock | contextlib.nullcontext[None]",
) -> float:
    """One line, and when its condition was seen, in milliseconds."""
    there = number % 2 == 0
    with writing:
        began = time.monotonic()
        agent.say([BREAKS if there else IS_WELL])
    at = server.until(WORDS, there, PATIENCE)
    time.sleep(max(0.0, began + APART - time.monotonic()))
    return (at - began) * 1_000


def _noise(number: int) -> str:
    code = (31, 43, 48)[number % 3]
    return f"NVRM: Xid (PCI:0000:ca:00): {code}, pid={number}, name=python3, Ch {number:08x}"
