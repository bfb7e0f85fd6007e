"""Writes Events about nodes: once each, counted when the same is said again, and never in the way.

An Event that cannot be written is said in the log and given up: nothing waits for one, and nothing
rests on one.
"""

import asyncio
import logging

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER
from activities.node_event import EVENTS, NodeEvent, again, manifest_of
from fleet.errors import Conflict, NotFound, Refused
from fleet.ports import Kubernetes, PatchType

TRIES = 3
"""Of one Event: a repeat of ours, or its expiry, may come in between."""
LIMIT_SECONDS = 3.0
"""For one Event: the step that it tells of waits no longer."""

_log = logging.getLogger(__name__)


class EventWriter:
    """Says things about nodes as Kubernetes Events."""

    def __init__(self, kubernetes: Kubernetes, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._now = now
        self.failed = 0
        """Events given up since this process began."""

    async def write(self, event: NodeEvent) -> bool:
        """Write it, or say in the log why not; never raises for what the world did."""
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await self._write(event)
        except (*WORKS_LATER, Refused, TimeoutError) as problem:
            self.failed += 1
            why = str(problem) or f"no answer in {LIMIT_SECONDS:g} s"
            _log.warning(
                "what=event-lost reason=%s node=%s why=%r", event.reason, event.node.name, why
            )
            return False
        return True

    async def _write(self, event: NodeEvent) -> None:
        for _ in range(TRIES):
            try:
                await self._kubernetes.create(EVENTS, manifest_of(event, self._now()))
            except Conflict:
                if await self._counted(event):
                    return
            else:
                return
        raise Conflict(409, "Contended", f"{event.name} changed {TRIES} times in between")

    async def _counted(self, event: NodeEvent) -> bool:
        """Count the Event that stands once more; False where it changed or expired meanwhile."""
        try:
            standing = await self._kubernetes.get(event.path)
            patch = again(event, standing, self._now())
            if patch is not None:
                await self._kubernetes.patch(event.path, patch, PatchType.MERGE)
        except (Conflict, NotFound):
            return False
        return True
