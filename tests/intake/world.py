"""A world for a whole watcher: the emulated API server over HTTP, an engine that takes notes,
wall time that can be moved, and a way to die at any call.
"""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from activities.adapters.kubernetes import connect
from fleet.errors import NotFound, Refused, Transient
from fleet.fault import Advice, FaultName
from fleet.mark import format_mark
from fleet.names import LEASES, MARK_ANNOTATION
from fleet.node import read_node
from fleet.ports import PatchType
from intake.clock import SystemClock
from intake.leader import LEASE
from intake.settings import Settings
from intake.watcher import Watcher
from simulator.apiserver.injection import Fault
from simulator.apiserver.server import ApiServer
from tests.intake.cases import PlainRules, a_fault, condition

QUICK = Settings(
    lease_duration=timedelta(seconds=1.2),
    lease_renew_every=timedelta(seconds=0.05),
    lease_give_up_after=timedelta(seconds=0.8),
    backoff_first=timedelta(seconds=0.02),
    backoff_limit=timedelta(seconds=0.2),
    sweep_every=timedelta(seconds=0.05),
    deliveries_per_second=4_000,
    compare_every=timedelta(seconds=0.1),
)
"""Waits of the loops are short; what is counted in wall time stays long and is skipped over."""

SICK = a_fault()
LIMIT = 60


class SkippingClock(SystemClock):
    """Real time, and jumps of the wall clock on request."""

    def __init__(self):
        self.skipped = timedelta()

    def now(self):
        return super().now() + self.skipped

    def skip(self, **delta):
        self.skipped += timedelta(**delta)


class Engine:
    """Incidents that remember what they were told; `away` makes every call fail, `refused` those
    that start with one node's name."""

    def __init__(self):
        self.open = set()
        self.handed_off = set()
        self.told = []
        self.away = False
        self.refused = ""
        self.calls = 0
        self.on_start = lambda opening: None

    def _answer(self, *what):
        self.calls += 1
        if self.away:
            raise Transient("connection refused")
        if self.refused and self.refused in what:
            raise Refused(3, "INVALID_ARGUMENT", "blob size exceeds limit")
        self.told.append(what)

    async def start(self, opening, report):
        self._answer("start", opening.node.name, opening, report)
        self.open.add(opening.workflow_id)
        self.on_start(opening)

    async def report(self, workflow_id, report):
        self._answer("report", report.node.name, workflow_id, report)
        return workflow_id in self.open

    async def node_gone(self, workflow_id, uid):
        self._answer("node-gone", workflow_id, uid)
        return workflow_id in self.open

    async def hold_removed(self, workflow_id, uid, mark_removed):
        self._answer("hold-removed", workflow_id, uid, mark_removed)
        return workflow_id in self.open

    async def is_open(self, workflow_id):
        self._answer("is-open", workflow_id)
        return workflow_id in self.open

    async def open_ids(self):
        self._answer("open-ids")
        return frozenset(self.open)

    async def handed_off_ids(self):
        return frozenset(self.handed_off)

    def heard(self, kind):
        return [what[1:] for what in self.told if what[0] == kind]


class World:
    """One API server with its nodes, and the engine."""

    def __init__(self, server, api):
        self.server = server
        self.api = api
        self.engine = Engine()
        self.clock = SkippingClock()
        self._watchers = 0

    def watcher(self, kubernetes=None, engine=None, settings=QUICK, rules=None, **more):
        self._watchers += 1
        return Watcher(
            kubernetes or self.api,
            engine or self.engine,
            rules or PlainRules(),
            cluster="c",
            identity=f"w{self._watchers}",
            settings=settings,
            clock=self.clock,
            **more,
        )

    @asynccontextmanager
    async def watching(self, **more):
        watcher = self.watcher(**more)
        task = asyncio.create_task(watcher.run())
        try:
            yield watcher
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def add_node(self, name, *faults, machine=None, ready=None, labels=None, **spec):
        body = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"providerID": f"sim://{machine or name}", **spec},
            "status": status(*faults, ready=ready),
        }
        await self.api.create("/api/v1/nodes", body)

    async def say(self, name, *faults, boot_id="b1", ready=None):
        """What the node's agent publishes."""
        body = {"status": status(*faults, boot_id=boot_id, ready=ready)}
        await self.api.patch(f"/api/v1/nodes/{name}/status", body, PatchType.MERGE)

    async def node(self, name):
        return read_node(await self.api.get(f"/api/v1/nodes/{name}"), "c")

    async def change(self, name, *, mark=..., taints=..., **annotations):
        """What a person, or the workflow, writes: a mark (None: takes it off), the taints."""
        body = {"metadata": {"annotations": annotations}}
        if mark is not ...:
            annotations[MARK_ANNOTATION] = mark and format_mark(mark)
        if taints is not ...:
            body["spec"] = {"taints": taints}
        await self.api.patch(f"/api/v1/nodes/{name}", body, PatchType.MERGE)

    async def delete(self, name):
        node = await self.node(name)
        await self.api.delete(f"/api/v1/nodes/{name}", uid=node.identity.uid)

    def patches(self, *, failed=False):
        """Every patch of a Node (not of its status) in the audit, by status code."""
        found = []
        for line in self.server.endpoint.audit.read_text().splitlines():
            event = json.loads(line)
            ref = event["objectRef"]
            if event["verb"] == "patch" and ref["resource"] == "nodes" and "subresource" not in ref:
                found.append(event)
        return [each for each in found if (each["responseStatus"]["code"] >= 400) is failed]

    async def until(self, predicate):
        """Wait until it is true; the limit only ends a test that has failed."""
        async with asyncio.timeout(LIMIT):
            while not await _value(predicate()):  # noqa: ASYNC110 - another process would poll too
                await asyncio.sleep(0.01)

    async def marked(self, name, state):
        async def stands():
            mark = (await self.node(name)).mark
            return mark is not None and mark.state == state

        await self.until(stands)
        return await self.node(name)

    async def swept(self, watcher, rounds=2):
        """Wait until the watcher knows every node as it is and has looked at all so often since."""
        await self.until(lambda: watcher.term is not None)
        await self.until(lambda: self.seen(watcher))
        comparison = watcher.term.comparison
        goal = comparison.rounds + rounds
        await self.until(lambda: comparison.rounds >= goal)

    async def swept_without_engine(self, watcher, rounds=3):
        """Wait until every node is known as it is and was judged so often since."""
        await self.until(lambda: self.seen(watcher))
        goal = self.engine.calls + 2 * rounds
        await self.until(lambda: self.engine.calls >= goal)

    async def gap(self):
        """Break the watches; the watch of nodes is resumed only after a while."""
        order = self.server.faults.order(Fault(verb="watch", path="/nodes$", delay_s=1.0))
        self.server.close_watches()
        await self.until(lambda: order.seen)

    async def rebooted(self, name, boot_id):
        """The machine booted, and its agent has not spoken since."""
        body = {"status": {"nodeInfo": {"bootID": boot_id}}}
        await self.api.patch(f"/api/v1/nodes/{name}/status", body, PatchType.MERGE)

    async def patch_lease(self, **spec):
        """Somebody else writes the watchers' Lease, where there is one."""
        with suppress(NotFound):
            await self.api.patch(f"{LEASES}/{LEASE}", {"spec": spec}, PatchType.MERGE)

    async def seen(self, watcher):
        page = await self.api.page("/api/v1/nodes")
        there = {each["metadata"]["name"]: each["metadata"] for each in page.items}
        known = watcher.term.nodes.records
        return known.keys() == there.keys() and all(
            known[name].resource_version == there[name]["resourceVersion"] for name in there
        )


@asynccontextmanager
async def a_world(directory):
    async with ApiServer(directory / "api") as server:
        config = server.endpoint.write_kubeconfig(directory / "kubeconfig")
        async with connect(str(config)) as api:
            yield World(server, api)


async def _value(answer):
    return await answer if asyncio.iscoroutine(answer) else answer


def status(*faults, boot_id="b1", ready=None):
    healthy = [condition(boot_id=boot_id, kind="gpumend.io/Driver")]
    healthy += [{"type": "Ready", "status": ready}] if ready else []
    sick = [condition(*faults, boot_id=boot_id)] if faults else []
    return {"nodeInfo": {"bootID": boot_id}, "conditions": [*healthy, *sick]}


def thermal():
    return a_fault(FaultName.THERMAL, "host", Advice.DRAIN)
