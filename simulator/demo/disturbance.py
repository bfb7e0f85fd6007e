"""Trouble on top of the script: a process killed at one call, or something away for a while."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from simulator.client import Api
from simulator.demo.gate import Gate
from simulator.demo.kills import Kill
from simulator.demo.stage import Stage
from simulator.demo.supervisor import Supervisor
from simulator.hardware.machine import Machine

ACCOUNTS = "system:serviceaccount:gpumend"
NODE_OF_AGENT = "authentication.kubernetes.io/node-name"

Tell = Callable[[str], None]


async def kill_at_gate(kill: Kill, gate: Gate, supervisor: Supervisor, tell: Tell) -> None:
    """The same at a call to the provider."""
    await gate.caught.wait()
    tell(f"{kill}: killed at a call to the provider")
    running = supervisor[kill.process]
    running.kill()
    await running.ended()
    gate.released.set()
    await running.start()
    tell(f"{kill.process} started again")


async def kill_at(kill: Kill, stage: Stage, supervisor: Supervisor, tell: Tell) -> None:
    """Wait until the call is made, kill the process there, and start it again."""
    timeout = aiohttp.ClientTimeout(total=None)
    token = stage.endpoint.tokens["admin"]
    async with Api(stage.endpoint.url, token, timeout=timeout) as admin:
        caught = await admin.create("/sim/tripwires", _tripwire(kill))
        tell(f"{kill}: killed at {caught['verb']} {caught['path']}")
        if kill.process == "agent":
            _kill_agent(stage, caught)
            await admin.create("/sim/release", {})
            return
        running = supervisor[kill.process]
        running.kill()
        await running.ended()
        await admin.create("/sim/release", {})
        await running.start()
        tell(f"{kill.process} started again")


async def away(name: str, seconds: float, supervisor: Supervisor, tell: Tell) -> None:
    """Kill a program and start it again after some seconds."""
    running = supervisor[name]
    tell(f"{name} is gone for {seconds:.0f} s")
    running.kill()
    await running.ended()
    await asyncio.sleep(seconds)
    await running.start()
    tell(f"{name} is back")


def _tripwire(kill: Kill) -> dict[str, Any]:
    call = kill.call
    user = f"{ACCOUNTS}:{call.account}"
    return {
        "user": user,
        "verb": call.verb,
        "path": call.path,
        "body": call.body,
        "after": kill.after,
    }


def _kill_agent(stage: Stage, caught: dict[str, Any]) -> None:
    """The process is that of the pod which the token is bound to; its kubelet starts it again."""
    node = caught["extra"][NODE_OF_AGENT][0]  # the machine of this name: kills play no other
    pod = caught["extra"]["authentication.kubernetes.io/pod-uid"][0]
    os.killpg(_pid(stage.machines[node], pod), signal.SIGKILL)


def _pid(machine: Machine, pod: str) -> int:
    return int(Path(machine.base / "pods" / pod / "pid").read_text())
