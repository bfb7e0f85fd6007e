"""Runs the controllers of a simulated cluster: `python -m simulator.controllers CONFIG`.

Each round compares what should be with what is seen and makes up the difference; a round follows
every change, and each second for the Leases. The file is described in `config.py`.
"""

import asyncio
import contextlib
import logging
import ssl
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulator.client import MERGE, UNREACHABLE, Api, ApiError
from simulator.controllers import READY_LINE
from simulator.controllers.budgets import budget_status, differs
from simulator.controllers.cloud import missing_labels, orphans, without_machine
from simulator.controllers.cluster import Cluster, Json
from simulator.controllers.config import ControllersConfig, read_controllers
from simulator.controllers.lifecycle import give_up, silent, taint, wanted_taints
from simulator.controllers.owners import missing_daemons, next_replica
from simulator.kubelet.node import LEASES

ROUND_SECONDS = 1.0
ORPHANED_SECONDS = 15.0
"""A pod whose Node is gone for this long is deleted; the real collector waits 40 s."""

log = logging.getLogger("controllers")


class Controllers:
    """All controllers over one view of the cluster."""

    def __init__(self, api: Api, config: ControllersConfig) -> None:
        self._api = api
        self._workloads = config.workloads
        self._daemons = config.daemons
        self._instances = {each.provider_id: each for each in config.instances}
        self._orphaned: dict[str, float] = {}
        self._cluster = Cluster()
        self._changed = asyncio.Event()
        self._listed: set[str] = set()

    async def run(self) -> None:
        """Run for ever."""
        seen = {
            "/api/v1/nodes": (self._cluster.nodes, "name"),
            "/api/v1/pods": (self._cluster.pods, "uid"),
            "/apis/policy/v1/poddisruptionbudgets": (self._cluster.budgets, "uid"),
        }
        async with asyncio.TaskGroup() as group:
            for path, (store, key) in seen.items():
                group.create_task(self._follow(path, store, key))
            await self._rounds(len(seen))

    async def _follow(self, path: str, store: dict[str, Json], key: str) -> None:
        async for kind, thing in self._api.follow(path):
            if kind == "SYNC":
                store.clear()
                store.update({each["metadata"][key]: each for each in thing["items"]})
                self._listed.add(path)
            elif kind == "DELETED":
                store.pop(thing["metadata"][key], None)
            elif kind != "BOOKMARK":
                store[thing["metadata"][key]] = thing
            self._changed.set()

    async def _rounds(self, collections: int) -> None:
        announced = False
        while True:
            with contextlib.suppress(TimeoutError):  # Leases grow old without any change
                await asyncio.wait_for(self._changed.wait(), ROUND_SECONDS)
            self._changed.clear()
            if len(self._listed) < collections:
                continue
            if not announced:
                log.info(READY_LINE)
                announced = True
            try:
                await self._round()
            except (*UNREACHABLE, ApiError) as error:
                log.info("round=failed error=%s", error)

    async def _round(self) -> None:
        await self._nodes()
        await self._machines()
        await self._collect()
        for daemon in self._daemons:
            for missing in missing_daemons(daemon, self._cluster):
                await self._create(missing)
        for workload in self._workloads:
            while pod := next_replica(workload, self._cluster):
                await self._create(pod)
        for budget in list(self._cluster.budgets.values()):
            await self._budget(budget)

    async def _nodes(self) -> None:
        leases = (await self._api.get(LEASES))["items"]
        for node in silent(self._cluster.nodes, leases):
            await self._unless_changed(give_up(self._api, node, datetime.now(UTC)))
        for node in list(self._cluster.nodes.values()):
            taints = wanted_taints(node)
            if taints is not None:
                await self._unless_changed(taint(self._api, node, taints))

    async def _machines(self) -> None:
        """As the cloud's controllers: labels of where a machine stands, no Node without one."""
        nodes = list(self._cluster.nodes.values())
        for node, labels in missing_labels(nodes, self._instances):
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            body = {"metadata": {"uid": node["metadata"]["uid"], "labels": labels}}
            await self._unless_changed(self._api.patch(path, body, MERGE))
        for node in without_machine(nodes, self._instances):
            meta = node["metadata"]
            path = f"/api/v1/nodes/{meta['name']}"
            await self._unless_changed(self._api.delete(path, meta["uid"]))

    async def _collect(self) -> None:
        """Pods whose Node has been gone for a while, as the pod garbage collector."""
        now = time.monotonic()
        found = {
            each["metadata"]["uid"]: each
            for each in orphans(self._cluster.pods.values(), self._cluster.nodes)
        }
        self._orphaned = {uid: self._orphaned.get(uid, now) for uid in found}
        for uid, since in self._orphaned.items():
            if now - since >= ORPHANED_SECONDS:
                meta = found[uid]["metadata"]
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                await self._unless_changed(self._api.delete(path, uid, 0))

    async def _create(self, pod: Json) -> None:
        created = await self._api.create(
            f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod
        )
        self._cluster.pods[created["metadata"]["uid"]] = created

    async def _budget(self, budget: Json) -> None:
        replicas = {each.uid: each.replicas for each in self._workloads}
        status = budget_status(budget, self._cluster, replicas)
        if not differs(budget, status):
            return
        meta = budget["metadata"]
        path = f"/apis/policy/v1/namespaces/{meta['namespace']}/poddisruptionbudgets/{meta['name']}"
        guard = {"resourceVersion": meta["resourceVersion"]}
        body = {"metadata": guard, "status": status}
        await self._unless_changed(self._api.patch(f"{path}/status", body, MERGE))

    async def _unless_changed(self, write: Any) -> None:
        """A write that rests on what was seen; a conflict means that the next round sees more."""
        try:
            await write
        except ApiError as error:
            if error.code not in (404, 409):
                raise


async def main(config: ControllersConfig) -> None:
    """Run the controllers that this configuration asks for."""
    tls = ssl.create_default_context(cafile=config.ca) if config.ca else None
    async with Api(config.url, config.token, tls) as api:
        await Controllers(api, config).run()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(main(read_controllers(Path(sys.argv[1]))))
