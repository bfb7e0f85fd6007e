"""By what a node can be repaired: what its kubelet, its provider and its owner are good for.

A provider that does not answer just now is taken for one that can: its step will see. That a
successor can be had first is only believed when it is said.
"""

from collections.abc import Iterator

from activities.clock import Clock, utc_now
from activities.kubelet import kubelet_silent
from activities.node_claims import claim_of
from fleet.errors import NotFound, Refused, Transient
from fleet.machine import Change
from fleet.names import node_path
from fleet.node import NodeIdentity, read_node
from fleet.ports import Kubernetes, Provider
from fleet.step import Means

RESTARTS = frozenset({Change.STOP, Change.START})
"""A provider without `restart` restarts a machine by these two."""


class MeansReader:
    """Reads the means of one node."""

    def __init__(self, kubernetes: Kubernetes, provider: Provider, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._provider = provider
        self._now = now

    async def of(self, node: NodeIdentity) -> tuple[Means, ...]:
        """What there is, mildest first; raises the port's errors for the API server's."""
        abilities = await self._abilities()
        found = set(by_provider(abilities))
        try:
            manifest = await self._kubernetes.get(node_path(node.name))
        except NotFound:
            return _sorted(found)
        if not await kubelet_silent(
            self._kubernetes, read_node(manifest, node.cluster), self._now()
        ):
            found.add(Means.INSIDE)
        if await claim_of(self._kubernetes, manifest):
            found = (found - {Means.LAUNCH}) | {Means.REPLACE}
        return _sorted(found)

    async def _abilities(self) -> frozenset[Change]:
        try:
            return await self._provider.abilities()
        except (Transient, Refused):
            return frozenset(Change) - {Change.LAUNCH}


def by_provider(abilities: frozenset[Change]) -> Iterator[Means]:
    """The means that a provider with these abilities is."""
    if Change.RESTART in abilities or abilities >= RESTARTS:
        yield Means.PROVIDER
    if Change.POWER_CYCLE in abilities:
        yield Means.POWER
    if Change.LAUNCH in abilities:
        yield Means.LAUNCH
    if Change.TERMINATE in abilities:
        yield Means.REPLACE


def _sorted(found: set[Means]) -> tuple[Means, ...]:
    return tuple(each for each in Means if each in found)
