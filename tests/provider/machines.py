"""A provider for tests of what we do with one: the reference server, the production adapter, and
machines whose boots show on the Nodes of a cluster.
"""

from contextlib import asynccontextmanager
from datetime import timedelta

import httpx

from activities.adapters.provider import WebhookProvider
from activities.adapters.provider_access import ProviderAccess
from activities.operations import Operations
from simulator.provider import PlayedMachines, ProviderServer
from simulator.provider.server import CHANGES
from tests.cluster import conditions, now

POLL = timedelta(milliseconds=5)


class Machines(PlayedMachines):
    """What boots says another boot id and is Ready, without any fault."""

    def __init__(self, records, cluster):
        super().__init__(records)
        self._cluster = cluster
        self.asked = []

    async def change(self, operation):
        self.asked.append(operation["change"])
        successor = await super().change(operation)
        if operation["change"] in ("restart", "start", "power-cycle"):
            node = operation["machine"]["node"]
            boot = f"boot-{self._records.machine(node)['boots']}"
            status = {"nodeInfo": {"bootID": boot}, "conditions": conditions(boot=boot)}
            await self._cluster.change_node({"status": status}, node)
        return successor


@asynccontextmanager
async def provider_in(directory, cluster, changes=CHANGES, power="on"):
    """The server with `machines` (asked: what they were asked), and `operations` in front of it."""
    server = ProviderServer(directory / "provider", changes=changes)
    server.machines = Machines(server.records, cluster)
    server.use(server.machines)
    server.machines.add("n1", power)
    async with server, httpx.AsyncClient(timeout=5) as http:
        provider = WebhookProvider(ProviderAccess(server.url), http, pauses=())
        server.operations = Operations(provider, now, poll=POLL)
        server.provider = provider
        yield server
