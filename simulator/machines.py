"""The process that plays machines: power, time and a kubelet for each of them.

Run as `python -m simulator.machines CONFIG`. It writes one line when all machines are up. With it
all containers end. A machine's truth lies in its directory, so it may be started again.
"""

import asyncio
import json
import logging
import os
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.client import Api
from simulator.hardware.machine import REBOOT, Machine
from simulator.kubelet.node import NodeSpec, NodeStatus
from simulator.kubelet.pods import Pods

READY_LINE = "machines are up"
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


def write_config(path: Path, config: Config) -> None:
    """Write the file that this process is started with; it holds tokens."""
    places = [
        {
            "base": str(place.base),
            "token": place.token,
            "node": {
                "name": place.node.name,
                "labels": dict(place.node.labels),
                "provider_id": place.node.provider_id,
                "lease": place.node.lease,
            },
        }
        for place in config.places
    ]
    fields = {"url": config.url, "ca": config.ca, "boot": config.boot, "places": places}
    path.touch(mode=0o600)
    path.write_text(json.dumps(fields))


def read_config(path: Path) -> Config:
    """Read it back."""
    fields: dict[str, Any] = json.loads(path.read_text())
    places = tuple(
        Place(Path(each["base"]), NodeSpec(**each["node"]), each["token"])
        for each in fields["places"]
    )
    return Config(fields["url"], fields["ca"], fields["boot"], places)


class PoweredMachine:
    """One machine from boot to boot."""

    def __init__(self, config: Config, place: Place) -> None:
        self._config = config
        self._place = place
        self._machine = Machine(place.base)
        self._rebooting = asyncio.Event()
        self._woken = asyncio.Event()
        self.up = asyncio.Event()

    async def run(self) -> None:
        """Run for ever."""
        pipe = os.open(self._machine.power, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(pipe, self._hear, pipe)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass_time())
            while True:
                await self._one_boot()

    def _hear(self, pipe: int) -> None:
        self._woken.set()
        if REBOOT in os.read(pipe, 4096):
            self._rebooting.set()

    async def _one_boot(self) -> None:
        name = self._place.node.name
        life = asyncio.create_task(self._live())
        asked = asyncio.create_task(self._rebooting.wait())
        try:
            await asyncio.wait({life, asked}, return_when=asyncio.FIRST_COMPLETED)
            if life.done():
                life.result()
            log.info("node=%s event=shutdown", name)
            await asyncio.sleep(SHUTDOWN_SECONDS)
        finally:
            asked.cancel()
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
        await asyncio.sleep(self._config.boot)
        self._machine.boot()
        self._rebooting.clear()
        log.info("node=%s event=boot boot=%s", name, self._machine.boot_id)

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
                group.create_task(node.heartbeat())
                group.create_task(pods.run())
                await node.ready()
                self.up.set()

    async def _pass_time(self) -> None:
        while True:
            self._woken.clear()
            pause = self._machine.pass_time()
            try:
                await asyncio.wait_for(self._woken.wait(), pause)
            except TimeoutError:
                continue


async def play(config: Config) -> None:
    """Play all machines for ever."""
    machines = [PoweredMachine(config, place) for place in config.places]
    async with asyncio.TaskGroup() as group:
        for machine in machines:
            group.create_task(machine.run())
        for machine in machines:
            await machine.up.wait()
        log.info(READY_LINE)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(play(read_config(Path(sys.argv[1]))))
