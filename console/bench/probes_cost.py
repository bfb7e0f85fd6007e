"""What an agent costs: its memory and its children's, cores, system calls and calls into NVML.

Two agents, one after the other. One looks every few seconds for some rounds, the other is left in
peace after its first round. Ten minutes of a core's time are what the idle one spends in them and
five rounds of the other: nothing else grows with time.
"""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.bench.agent_process import AgentProcess, running, surroundings, until
from console.bench.machine import resident
from console.bench.probes_server import Server
from probes.agent.run import ROUTINE_PERIOD
from probes.machine import Machine

ROUNDS, OFTEN, IDLE_SECONDS = 6, 4, 30.0
"""Rounds that are measured, seconds between them, and how long the idle agent is watched."""
SETTLE_SECONDS = 5.0
TEN_MINUTES = 600.0
CALLS_SECONDS = 10.0
SELDOM = 3_600
AGENT_MIB, CHILD_MIB, PERCENT = 40, 64, 0.5
"""The limits: resident memory of the agent and of any child, share of one core in ten minutes."""
NOT_MEASURED = "not measured"
_ONE_ROUND = """
import resource, sys
from probes.agent.senses import Senses
from probes.machine import machine
Senses(machine(sys.argv[1], None, "")).look({}, True, lambda _: None)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
_COUNTING = """
import sys, pynvml
calls, find = [0], pynvml._nvmlGetFunctionPointer
def counted(name):
    calls[0] += 1
    return find(name)
pynvml._nvmlGetFunctionPointer = counted
from probes.nvml import child
child.main()
print(calls[0], file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent runs in a benchmark."""

    machine: Machine
    server: Server
    environment: Mapping[str, str]


def measure(place: Place) -> dict[str, Any]:
    """Everything, with how it was measured."""
    with _agent(place, OFTEN) as agent:
        round_core, memory = _rounds(agent), resident(agent.pid, "VmHWM")
    with _agent(place, SELDOM) as agent:
        idle_core, calls = _idle(agent), _system_calls(agent.pid)
    each = TEN_MINUTES / ROUTINE_PERIOD
    seconds = idle_core * TEN_MINUTES + round_core * each
    asked = _nvml_calls(place)
    return {
        "agent_mib": memory,
        "largest_child_mib": _largest_child(place),
        "core_percent": round(100 * seconds / TEN_MINUTES, 3),
        "round_core_seconds": round(round_core, 3),
        "idle_core_percent": round(100 * idle_core, 3),
        "idle_system_calls_per_second": calls,
        "nvml_calls_per_second": asked and round(asked / ROUTINE_PERIOD, 1),
        "nvml_calls_a_round": asked or NOT_MEASURED,
    }


def met(found: Mapping[str, Any]) -> bool:
    """Whether every limit is kept."""
    small = found["agent_mib"] <= AGENT_MIB and found["largest_child_mib"] <= CHILD_MIB
    return bool(small and found["core_percent"] <= PERCENT)


def _agent(place: Place, every: int) -> Any:
    token = place.server.token
    return running(place.machine, place.server.url, token, every, place.environment)


def _rounds(agent: AgentProcess) -> float:
    """Core seconds of one round, the agent's own idle time within them included."""
    before, spent = agent.rounds(), agent.core_seconds()
    until(lambda: agent.rounds() >= before + ROUNDS)
    return (agent.core_seconds() - spent) / (agent.rounds() - before)


def _idle(agent: AgentProcess) -> float:
    """Core seconds a second of an agent between its rounds; scrapes are none of it."""
    time.sleep(SETTLE_SECONDS)
    spent, began = agent.core_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (agent.core_seconds() - spent) / (time.monotonic() - began)


def _system_calls(pid: int) -> float | str:
    """Of all its threads, by `strace`, where that is there and allowed."""
    program = shutil.which("strace")
    if program is None:
        return NOT_MEASURED
    command = [program, "-c", "-f", "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 - found above
    time.sleep(CALLS_SECONDS)
    tracer.send_signal(signal.SIGINT)
    said = tracer.communicate(timeout=30)[1]
    total = next((line.split() for line in said.splitlines() if line.endswith(" total")), None)
    return (
        round(int(total[-2 if len(total) < 6 else -3]) / CALLS_SECONDS, 1)
        if total
        else (NOT_MEASURED)
    )


def _largest_child(place: Place) -> float:
    """MiB of the largest child of one round; at least what the process that starts it has."""
    command = [sys.executable, "-c", _ONE_ROUND, str(place.machine.root)]
    done = subprocess.run(  # noqa: S603 - ourselves
        command, check=True, capture_output=True, text=True, env=_environment(place)
    )
    return round(int(done.stdout) / 1024, 1)


def _nvml_calls(place: Place) -> int:
    """Calls into the C library that the real child makes in one round; 0 where it is played."""
    if not place.environment:
        return 0
    command = [sys.executable, "-c", _COUNTING]
    done = subprocess.run(  # noqa: S603 - ourselves
        command, check=True, capture_output=True, text=True, env=_environment(place)
    )
    return int(done.stderr.split()[-1])


def _environment(place: Place) -> dict[str, str]:
    return surroundings(place.machine, place.environment)
