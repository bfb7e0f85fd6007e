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
            machine = self._records.machine(node)
            assert machine
            boot = f"boot-{machine['boots']}"
            status = {"nodeInfo": {"bootID": boot}, "conditions": conditions(boot=boot)}
            await self._cluster.change_node({"status": status}, node)
        return successor


class Provided:
    """The reference server, its machines, and the production code in front of it."""

    def __init__(self, server, machines, provider):
        self.server = server
        self.machines = machines
        self.provider = provider
        self.faults = server.faults
        self.operations = Operations(provider, now, poll=POLL)


@asynccontextmanager
async def provider_in(directory, cluster, changes=CHANGES, power="on"):
    """A provider with the machine of n1."""
    server = ProviderServer(directory / "provider", changes=changes)
    machines = Machines(server.records, cluster)
    server.use(machines)
    machines.add("n1", power)
    async with server, httpx.AsyncClient(timeout=5) as http:
        provider = WebhookProvider(ProviderAccess(server.url), http, pauses=())
        yield Provided(server, machines, provider)
