"""Is a node's agent alive? Its Lease says so, by the watcher's own clock.

A silent agent is `monitor-silent` in the Report and moves nothing by itself: the sensor is the
suspect, not the machine.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.instant import parse_instant
from fleet.names import AGENT_VERSION_ANNOTATION, agent_lease
from fleet.ports import Json
from intake.settings import Settings

LONGEST_VERSION = 40
"""Characters kept: it is named to people where many sick nodes share it."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a Lease says: when it was renewed (None: never), and which gpumend its agent is."""

    renewed: datetime | None
    version: str = ""


def read_heartbeat(lease: Json) -> Heartbeat:
    """A Lease as far as we care; raises ValueError for an instant that is none."""
    text = (lease.get("spec") or {}).get("renewTime")
    notes = lease["metadata"].get("annotations") or {}
    version = str(notes.get(AGENT_VERSION_ANNOTATION, ""))[:LONGEST_VERSION]
    return Heartbeat(parse_instant(text) if text else None, version)


@dataclass(frozen=True, slots=True)
class Boot:
    """A boot of a node and when we first saw it."""

    id: str
    seen: datetime


class Agents:
    """When each agent was last heard of.

    A renewal counts from when we saw it change, so an agent's wrong clock does not matter; only
    the first sight of a Lease takes its word, and never for a time to come.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._heard: dict[str, datetime] = {}
        self._boots: dict[str, Boot] = {}

    def renewed(self, lease: str, renewal: datetime | None, now: datetime) -> None:
        """A Lease was seen or has changed."""
        if renewal is None:
            return
        self._heard[lease] = now if lease in self._heard else min(renewal, now)

    def lease_gone(self, lease: str) -> None:
        """A Lease was deleted: its agent counts as unheard of."""
        self._heard.pop(lease, None)

    def booted(self, node: str, boot_id: str, now: datetime) -> None:
        """A node was seen with this boot id."""
        known = self._boots.get(node)
        if known is None or known.id != boot_id:
            self._boots[node] = Boot(boot_id, now)

    def node_gone(self, node: str) -> None:
        """A Node was deleted; its Lease goes its own way."""
        self._boots.pop(node, None)

    def silent(self, node: str, now: datetime) -> bool:
        """True after the named limit without a renewal, and not within the grace of a boot."""
        boot = self._boots.get(node)
        if boot is None or now < boot.seen + self._settings.boot_grace:
            return False
        heard = self._heard.get(agent_lease(node))
        return heard is None or now >= heard + self._settings.agent_silent_after
