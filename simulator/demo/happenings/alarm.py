"""A monitor of somebody else that cries wolf: an upgrade of it turns a whole pool red."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from simulator.client import Api
from simulator.demo.scenario import Reach
from simulator.kubelet.status import condition

MONITOR = "system:serviceaccount:monitoring:node-monitor"
CONDITION = "AcceleratedHardwareReady"
REASON = "DCGMHealthCode71"
BETWEEN_SECONDS = 0.2
"""The upgrade rolls from node to node."""


@dataclass(frozen=True, slots=True)
class CriesWolf:
    """Every node of `nodes` is called sick, wrongly, and well again after `lasts` seconds."""

    fault: ClassVar[bool] = True

    nodes: tuple[str, ...]
    lasts: float

    @property
    def told(self) -> str:
        """Who says it of how many."""
        return f"an upgraded monitor calls {len(self.nodes)} sound nodes sick"

    async def happen(self, node: str, reach: Reach) -> None:
        """Roll the bad version out, then roll it back."""
        async with reach.api(MONITOR) as api:
            await self._say(api, "False", REASON)
            await asyncio.sleep(self.lasts)
            reach.tell(node, "the monitor's upgrade is rolled back")
            await self._say(api, "True", "AcceleratedHardwareIsReady")

    async def _say(self, api: Api, status: str, reason: str) -> None:
        for name in self.nodes:
            said = condition(CONDITION, status, reason, "monitor 1.7.0", datetime.now(UTC))
            await api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [said]}})
            await asyncio.sleep(BETWEEN_SECONDS)


@dataclass(frozen=True, slots=True)
class IsAmong:
    """A node that another's happening concerns as well."""

    fault: ClassVar[bool] = False

    @property
    def told(self) -> str:
        """Nothing: the other one says it."""
        return ""

    async def happen(self, node: str, reach: Reach) -> None:
        """Nothing of its own."""
