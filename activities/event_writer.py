"""Writes Events about nodes: one call each, nothing when the same is said again, never in the way.

An Event that cannot be written is said in the log and given up: nothing waits for one, and nothing
rests on one.
"""

import asyncio
import logging
from contextlib import suppress

from activities.clock import Clock, utc_now
from activities.conduct import WORKS_LATER
from activities.node_event import EVENTS, NodeEvent, manifest_of
from fleet.errors import Conflict, Refused
from fleet.ports import Kubernetes

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
        with suppress(Conflict):  # it was said before
            await self._kubernetes.create(EVENTS, manifest_of(event, self._now()))
