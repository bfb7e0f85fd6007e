"""One machine under power: dark, up with its kubelet, and whatever its switch makes of it."""

import asyncio
import logging
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from simulator.client import Api
from simulator.hardware.machine import Machine
from simulator.hardware.power import Power, Signal
from simulator.kubelet.node import NodeSpec, NodeStatus
from simulator.kubelet.pods import Pods

SHUTDOWN_SECONDS = 0.5
"""From the request to reboot until the machine is dark."""

log = logging.getLogger("machines")


@dataclass(frozen=True, slots=True)
class Place:
    """One machine: where it lies, how its kubelet is configured, and with which token."""

    base: Path
    node: NodeSpec
    token: str


@dataclass(frozen=True, slots=True)
class Config:
    """`boot` is how many seconds a machine is dark; `ca` is empty for plain http."""

    url: str
    ca: str
    boot: float
    places: tuple[Place, ...]


class PoweredMachine:
    """One machine from boot to boot. `up` is set once its kubelet was ready."""

    def __init__(self, config: Config, place: Place) -> None:
        self._config = config
        self._place = place
        self._machine = Machine(place.base)
        self.power = self._machine.power
        self._told = {each: asyncio.Event() for each in Signal}
        self._stopped = asyncio.Event()
        self.up = asyncio.Event()

    async def run(self) -> None:
        """Run for ever."""
        pipe = os.open(self.power.pipe, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(pipe, self._hear, pipe)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass_time())
            while True:
                await (self._one_boot() if self.power.state is Power.ON else self._come_up())

    def _hear(self, pipe: int) -> None:
        for word in os.read(pipe, 4096).decode().split():
            self._told[Signal(word)].set()
            if word in (Signal.REBOOT, Signal.CYCLE, Signal.CUT):
                self._stopped.set()
        self._told[Signal.WAKE].set()

    async def _one_boot(self) -> None:
        """Up, until it is told to stop; then dark."""
        name = self._place.node.name
        life = asyncio.create_task(self._live())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({life, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life.result()
            log.info("node=%s event=shutdown", name)
            if not self._cut():
                await asyncio.sleep(SHUTDOWN_SECONDS)
        finally:
            stopped.cancel()
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
        self.power.show(Power.OFF if self._told[Signal.CUT].is_set() else Power.DARK)

    def _cut(self) -> bool:
        return self._told[Signal.CUT].is_set() or self._told[Signal.CYCLE].is_set()

    async def _come_up(self) -> None:
        """Wait for power where there is none, then boot; a cut in the meantime is a cut."""
        if self.power.state is not Power.DARK:
            self._told[Signal.START].clear()
            await self._told[Signal.START].wait()
            self._told[Signal.CUT].clear()
        await asyncio.sleep(self._config.boot)
        if self._told[Signal.CUT].is_set():
            self.power.show(Power.OFF)
            return
        self._machine.boot()
        for each in Signal:
            self._told[each].clear()
        self._stopped.clear()
        self.power.show(Power.ON)
        log.info("node=%s event=boot boot=%s", self._place.node.name, self._machine.boot_id)

    async def _live(self) -> None:
        """What runs on the machine between two boots."""
        tls = ssl.create_default_context(cafile=self._config.ca) if self._config.ca else None
        async with Api(self._config.url, self._place.token, tls) as api:
            node = NodeStatus(api, self._machine, self._place.node)
            await node.register()
            ca = Path(self._config.ca) if self._config.ca else None
            scratch = self._place.base / "pods"
            pods = Pods(api, self._machine, self._place.node.name, scratch, ca)
            async with asyncio.TaskGroup() as group:
                beat = group.create_task(node.heartbeat())
                group.create_task(pods.run())
                await node.ready()
                self.up.set()
                await self._told[Signal.FAINT].wait()
                log.info("node=%s event=kubelet-died", self._place.node.name)
                beat.cancel()
                pods.die()

    async def _pass_time(self) -> None:
        while True:
            self._told[Signal.WAKE].clear()
            pause = self._machine.pass_time()
            try:
                await asyncio.wait_for(self._told[Signal.WAKE].wait(), pause)
            except TimeoutError:
                continue
