"""Machines that are not what their name says any more."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from simulator.demo.happenings.hardware import Breaks
from simulator.demo.happenings.persons import ADA
from simulator.demo.scenario import Reach
from simulator.hardware.power import Power, Signal
from simulator.observer import sight

TAKEN_SECONDS = 3.0
"""Between its hold and the moment in which it is taken away."""
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Joins:
    """A new machine is switched on, and its node is unproven; it is over when it takes work."""

    fault: ClassVar[bool] = False

    machine: str

    @property
    def told(self) -> str:
        """That it comes."""
        return "a new machine joins"

    async def happen(self, node: str, reach: Reach) -> None:
        """Switch it on, and wait for its proof."""
        reach.machines[self.machine].power.ask(Signal.START)
        await reach.until(lambda: _takes_work(reach.nodes.get(node)))


@dataclass(frozen=True, slots=True)
class AnotherComes:
    """A machine breaks, somebody carries it away, and another one comes up under its name."""

    fault: ClassVar[bool] = True

    breaks: Breaks
    machine: str

    @property
    def told(self) -> str:
        """What breaks first."""
        return self.breaks.told

    async def happen(self, node: str, reach: Reach) -> None:
        """Break, be held, be carried away; when its pods are cleared away, the other is switched
        on: a kubelet starts whatever is bound to its name."""
        await self.breaks.happen(node, reach)
        await reach.until(lambda: sight.hold(reach.nodes.get(node, {})) is not None)
        await asyncio.sleep(TAKEN_SECONDS)
        reach.tell(node, "its machine is carried away by somebody else")
        old = reach.machines[node].power
        old.give_back()
        await reach.until(lambda: old.state is Power.GONE and node not in reach.nodes)
        await _left_by_pods(node, reach)
        reach.tell(node, f"another machine ({self.machine}) comes up under this name")
        reach.machines[self.machine].power.ask(Signal.START)


async def _left_by_pods(node: str, reach: Reach) -> None:
    """Until whoever clears up after a Node that is gone has deleted its pods."""
    path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
    async with reach.api(ADA) as api:
        while (await api.get(path))["items"]:  # noqa: ASYNC110 # happenings see nodes, not pods
            await asyncio.sleep(LOOK_SECONDS)


def _takes_work(node: sight.Json | None) -> bool:
    return node is not None and sight.unproven(node) is None
