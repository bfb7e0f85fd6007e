"""The ConfigMap of the breaker: read whole, written by compare-and-set."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.errors import NotFound
from fleet.ports import Json, Kubernetes, PatchType
from intake.breaker_record import (
    CLOSE,
    CONFIG_MAPS,
    NAME,
    PATH,
    CloseOrder,
    format_circuit,
    parse_circuit,
    parse_order,
)
from intake.journal import Journal
from policies.breaker import Circuit, Phase

MOST_CIRCUITS = 1_500
"""A ConfigMap takes 1 MiB; the longest circuit is under 700 bytes."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is on record at one version; the version is empty where nothing is."""

    version: str
    circuits: Mapping[str, Circuit]
    orders: Mapping[str, CloseOrder]


class BreakerStore:
    """Raises the errors of `fleet.errors`."""

    def __init__(self, kubernetes: Kubernetes, journal: Journal) -> None:
        self._kubernetes = kubernetes
        self._journal = journal

    async def read(self, now: datetime) -> Stored:
        """Everything on record. A circuit that cannot be read is open: a share may close it."""
        try:
            manifest = await self._kubernetes.get(PATH)
        except NotFound:
            return Stored("", {}, {})
        data: Mapping[str, str] = manifest.get("data") or {}
        circuits = {key: self._circuit(key, text, now) for key, text in data.items() if _own(key)}
        closes = {key: text for key, text in data.items() if not _own(key)}
        orders = {key: each for key, text in closes.items() if (each := self._order(key, text))}
        named = {key.removeprefix(CLOSE): each for key, each in orders.items()}
        return Stored(manifest["metadata"]["resourceVersion"], circuits, named)

    async def write(self, before: Stored, after: Mapping[str, Circuit]) -> Stored:
        """Make the record be `after`, its orders heeded; raises Conflict if somebody was first."""
        kept = dict(list(after.items())[:MOST_CIRCUITS])
        changed = {k: format_circuit(v) for k, v in kept.items() if before.circuits.get(k) != v}
        gone = {key: None for key in before.circuits if key not in kept}
        heeded = {CLOSE + key: None for key in before.orders}
        data: dict[str, str | None] = {**changed, **gone, **heeded}
        if not data:
            return before
        manifest = await self._put(before.version, data)
        return Stored(manifest["metadata"]["resourceVersion"], kept, {})

    async def _put(self, version: str, data: Mapping[str, str | None]) -> Json:
        if not version:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}}
            return await self._kubernetes.create(CONFIG_MAPS, {**body, "data": dict(data)})
        guarded = {"metadata": {"resourceVersion": version}, "data": dict(data)}
        return await self._kubernetes.patch(PATH, guarded, PatchType.MERGE)

    def _circuit(self, key: str, text: str, now: datetime) -> Circuit:
        try:
            circuit = parse_circuit(text)
        except ValueError as problem:
            self._journal.trouble(f"breaker {key}", "taken-for-open", circuit=key, because=problem)
            kind, _, value = key.partition(".")
            why = "its record is broken"
            return Circuit(f"{kind}/{value}", Phase.OPEN, now, now, cause=why, opened=now)
        self._journal.over(f"breaker {key}", "circuit-readable-again", circuit=key)
        return circuit

    def _order(self, key: str, text: str) -> CloseOrder | None:
        try:
            return parse_order(text)
        except ValueError as problem:
            self._journal.trouble(
                f"breaker {key}",
                "not-an-order",
                entry=key,
                because=problem,
                remedy='write {"actor": "...", "reason": "..."}',
            )
            return None


def _own(key: str) -> bool:
    return not key.startswith(CLOSE)
