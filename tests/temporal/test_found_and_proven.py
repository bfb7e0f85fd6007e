"""The whole way of a fault that only a sweep can find: watcher, workflows, activities and node
steps are the real ones, before the emulated API server; the kubelet and the agent's loop are not.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from temporalio.client import Client

import worker
from activities.adapters.temporal import TemporalIncidents
from activities.adapters.temporal_budget import TemporalBudget
from activities.adapters.temporal_proofs import TemporalProofs
from activities.event_writer import EventWriter
from activities.no_provider import NoProvider
from console.worker_settings import Settings
from fleet import names
from fleet.check import Check
from fleet.closing import Closing
from fleet.fault import FaultName
from fleet.incident import End
from fleet.proving import ProofClosing, ProofEnd
from intake.rules import PolicyRules
from intake.settings import Settings as Limits
from intake.watcher import Watcher
from policies.document import load
from policies.prove_terms import ProveTerms
from policies.schema import Policy
from probes import checks
from tests.agent.fake_machine import BOOT
from tests.cluster import Cluster, cluster_in
from tests.proving.machine import SickMachine
from tests.proving.nodes import serving
from tests.temporal.running import soon_at_a_loss

pytestmark = pytest.mark.asyncio(loop_scope="session")
SOON = timedelta(seconds=1)
LIMIT = 180.0
"""Seconds; only a test that has failed takes them."""

POLICY = """
budgets: [{scope: cluster, max: 1}]
limits: {step_pause: 1s, look_again: 5s}
faults:
  wrong-results:
    {tolerate: 0s, steps: [reset-gpu], drain: {deadline: 30s}, probation: 1s,
     verify: {checks: [pci], settle: 0s}}
proving: {checks: [pci, compute], pause: 1s, sweep: {every: 7d}}
"""


@asynccontextmanager
async def engine(client: Client, cluster: Cluster, policy: Policy) -> AsyncIterator[None]:
    """Watcher and workers, put together as in production."""
    settings = Settings("all", "c1", "image", None, timedelta(seconds=1))
    incidents = TemporalIncidents(lambda: client, lambda: policy)
    voice = worker._Voice(EventWriter(cluster.api), None, CollectorRegistry(), False)
    workers = worker._workers(settings, client, cluster.api, NoProvider(), incidents, voice)
    watcher = Watcher(
        cluster.api,
        incidents,
        PolicyRules(policy),
        cluster="c1",
        identity="w1",
        budgets=TemporalBudget(lambda: client, "c1"),
        proofs=TemporalProofs(lambda: client, lambda: policy),
        settings=Limits(sweep_every=SOON, report_at_most_every=SOON),
    )
    async with AsyncExitStack() as stack:
        for each in workers:
            await stack.enter_async_context(each)
        watching = asyncio.create_task(watcher.run())
        try:
            yield
            assert not watching.done(), watching.exception()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def until(done) -> None:
    """Wait for what other parts do; the limit is around the test."""
    while not await done():  # noqa: ASYNC110  # a server says nothing of what a person would see
        await asyncio.sleep(0.1)


async def test_a_fault_that_a_sweep_found_is_repaired_and_the_node_proven(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    policy, client = soon_at_a_loss(load(POLICY, "p"), timedelta(seconds=10)), server.client
    async with cluster_in(tmp_path) as cluster, asyncio.timeout(LIMIT):
        machine = SickMachine(tmp_path / "machine", cluster)
        monkeypatch.setattr(checks, "ACTIVE", {Check.COMPUTE: machine.compute})
        cluster.on_step, cluster.after_step = machine.run, machine.speak
        node = await cluster.add_node(boot=BOOT, **serving())
        await machine.speak()
        proof = client.get_workflow_handle(names.prove_workflow_id("c1", "n1", node.machine))
        incident = client.get_workflow_handle(names.incident_workflow_id("c1", "n1", node.machine))
        async with engine(client, cluster, policy):
            await until(lambda: _knows(client))
            sweep = await client.start_workflow(
                names.SWEEP_WORKFLOW,
                args=["c1", ProveTerms.of(policy)],
                id="sweep/c1-now",
                task_queue=names.TASK_QUEUE,
            )
            assert (await sweep.result())["ends"] == {"found": 1}
            await until(lambda: _marked(cluster))
            held = await cluster.node()
            assert (held.unproven and held.unproven.value, bool(held.hold)) == ("found", True)
            closing = Closing(**await incident.result())
            assert closing.end == End.REPAIRED
            await until(lambda: _serves(cluster))
            ended = ProofClosing(**await proof.result())
        after = await cluster.node()
        assert ended.end == ProofEnd.PROVEN
        assert after.proof.proven
        assert [each.key for each in after.taints] == ["example.com/mine"]
        assert machine.steps[0] == "verify"
        assert machine.steps.count("reset-gpu") == 1
        events = await cluster.raw.read("/api/v1/namespaces/default/events")
        reasons = [each["reason"] for each in events["items"]]
        for reason in ("NodeSwept", "NodeNotProven", "IncidentHeld", "IncidentReset", "NodeProven"):
            assert reason in reasons
        assert FaultName.WRONG_RESULTS in " ".join(each["message"] for each in events["items"])


async def _knows(client: Client) -> bool:
    """The budget has a census: before it nothing is lent."""
    handle = client.get_workflow_handle(names.budget_workflow_id("c1"))
    try:
        ledger = await handle.query(names.QUERY_LEDGER)
    except Exception:  # noqa: BLE001  # not started yet
        return False
    return not ledger["stopped"]


async def _marked(cluster: Cluster) -> bool:
    return (await cluster.node()).mark is not None


async def _serves(cluster: Cluster) -> bool:
    node = await cluster.node()
    return node.mark is None and node.hold is None and node.unproven is None
