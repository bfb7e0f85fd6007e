"""The process that plays all machines of a run: `python -m simulator.machines CONFIG`.

It writes one line when every machine that is switched on is up. With it all containers end. A
machine's truth lies in its directory, so it may be started again.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from simulator.hardware.power import Power
from simulator.kubelet.node import NodeSpec
from simulator.powered import Config, Place, PoweredMachine

READY_LINE = "machines are up"

log = logging.getLogger("machines")


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
                "machine": place.node.machine,
                "taints": [dict(each) for each in place.node.taints],
                "annotations": dict(place.node.annotations),
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


async def play(config: Config) -> None:
    """Play all machines for ever."""
    machines = [PoweredMachine(config, place) for place in config.places]
    async with asyncio.TaskGroup() as group:
        for machine in machines:
            group.create_task(machine.run())
        for machine in machines:
            if machine.power.state is Power.ON:
                await machine.up.wait()
        log.info(READY_LINE)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(play(read_config(Path(sys.argv[1]))))
