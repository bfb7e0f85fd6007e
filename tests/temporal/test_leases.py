"""Leases on a real server: who dies, who waits, and what comes back."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.adapters.temporal import TemporalIncidents
from activities.adapters.temporal_budget import TemporalBudget
from activities.coalescer import Coalescer
from activities.lease import BudgetActivities
from fleet import names
from fleet.census import Census
from fleet.mark import MarkState
from fleet.node import NodeIdentity
from fleet.opening import Opening
from policies.exchange import Answer, Batch
from policies.ledger import Ask, Claim, Freeze, Lease, Ledger
from policies.ledger_archive import pack
from policies.ledger_view import LedgerView
from tests.cluster import Cluster, cluster_in, mark
from tests.incidents.virtual import a_fault, an_opening
from tests.temporal.fakes import Truth
from tests.temporal.running import LONGEST, hurried
from workflows.disruption_budget import LOOK_EVERY, MOST_WAITING, DisruptionBudget
from workflows.sandbox import RUNNER

pytestmark = pytest.mark.asyncio(loop_scope="session")
LONG_AGO = datetime.now(UTC) - 2 * LOOK_EVERY


@dataclass
class Bank:
    client: Client
    incidents: TemporalIncidents
    kubernetes: Cluster
    name: str

    def process(self) -> Coalescer:
        """One more process that asks."""
        return Coalescer(TemporalBudget(lambda: self.client, self.name).exchange)

    async def incident(self, node: str) -> Opening:
        """An open incident; nobody works on it."""
        plain = an_opening()
        identity = NodeIdentity(self.name, node, "u1", "m1")
        opening = replace(plain, node=identity)
        report = Truth((a_fault("gpu:3", "uncontained-memory"),)).report()
        await self.incidents.start(opening, replace(report, node=identity))
        return opening

    async def ledger(self) -> LedgerView:
        handle = self.client.get_workflow_handle_for(
            DisruptionBudget.run, names.budget_workflow_id(self.name)
        )
        return await handle.query(DisruptionBudget.ledger)

    async def begin(self, ledger: Ledger) -> None:
        now = datetime.now(UTC)
        ledger = replace(ledger, census=Census(now), counted=now)
        await self.client.start_workflow(
            names.BUDGET_WORKFLOW,
            args=[pack(ledger)],
            id=names.budget_workflow_id(self.name),
            task_queue=names.BUDGET_TASK_QUEUE,
        )

    async def looked(self) -> LedgerView:
        """The ledger once every lease of long ago was looked at."""
        handle = self.client.get_workflow_handle(names.budget_workflow_id(self.name))
        while True:
            history = await handle.fetch_history()
            done = [
                each.HasField("activity_task_completed_event_attributes") for each in history.events
            ]
            if any(done):
                return await self.ledger()
            await asyncio.sleep(0.05)

    async def told(self, workflow_id: str) -> bool:
        history = await self.client.get_workflow_handle(workflow_id).fetch_history()
        signals = [each.workflow_execution_signaled_event_attributes for each in history.events]
        return any(each.signal_name == names.SIGNAL_GRANT for each in signals)


@asynccontextmanager
async def banking(client: Client, tmp_path) -> AsyncIterator[Bank]:
    incidents = TemporalIncidents(lambda: client, hurried)
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        lender = BudgetActivities(incidents, cluster.api)
        worker = Worker(
            client,
            task_queue=names.BUDGET_TASK_QUEUE,
            workflows=[DisruptionBudget],
            activities=[lender.grant, lender.look_at_leases],
            workflow_runner=RUNNER,
        )
        async with worker, asyncio.timeout(LONGEST):
            bank = Bank(client, incidents, cluster, f"c-{uuid.uuid4()}")
            yield bank


def holders(ledger: LedgerView) -> set[str]:
    return {each.incident for each in ledger.leases}


def ask(incident: str, node: str = "n", most: int = 1, since: datetime = LONG_AGO) -> Ask:
    return Ask(incident, node, (Claim("cluster/c", most),), since)


def lent(incident: str, node: str) -> Lease:
    return Lease(ask(incident, node), LONG_AGO, LONG_AGO, told=True)


@pytest.mark.parametrize("owned", [False, True])
async def test_the_lease_of_a_terminated_run_goes_to_who_waits_unless_its_node_is_marked_as_owned(
    server, tmp_path, owned
):
    async with banking(server.client, tmp_path) as bank:
        state = MarkState.OWNED if owned else MarkState.PENDING
        await bank.kubernetes.add_node(name="dead", marked=mark(state, machine="m1"))
        dead, waits = await bank.incident("dead"), await bank.incident("waits")
        await server.client.get_workflow_handle(dead.workflow_id).terminate()
        waiting = (ask(waits.workflow_id, "waits"),)
        await bank.begin(Ledger((lent(dead.workflow_id, "dead"),), waiting))
        ledger = await bank.looked()
        if owned:
            assert holders(ledger) == {dead.workflow_id}
            assert not await bank.told(waits.workflow_id)
        else:
            assert holders(ledger) == {waits.workflow_id}
            while not await bank.told(waits.workflow_id):  # noqa: ASYNC110  # a server, not us
                await asyncio.sleep(0.05)


async def test_an_open_run_keeps_its_lease_however_old_it_is(server, tmp_path):
    async with banking(server.client, tmp_path) as bank:
        opening = await bank.incident("alive")
        await bank.begin(Ledger((lent(opening.workflow_id, "alive"),)))
        assert holders(await bank.looked()) == {opening.workflow_id}


async def test_a_frozen_budget_takes_leases_back_and_grants_none(server, tmp_path):
    async with banking(server.client, tmp_path) as bank:
        frozen = Freeze("ada", "storm", LONG_AGO)
        waits = await bank.incident("waits")
        await bank.begin(Ledger((lent("gone", "n9"),), (ask(waits.workflow_id),), freeze=frozen))
        ledger = await bank.looked()
        assert (ledger.leased, ledger.waiting) == (0, 1)
        assert await bank.process().ask(ask("another")) == "frozen by ada: storm"
        assert not await bank.told(waits.workflow_id)


async def test_two_processes_that_ask_for_the_same_get_it_once(server, tmp_path):
    async with banking(server.client, tmp_path) as bank:
        await bank.begin(Ledger())
        one, two = bank.process(), bank.process()
        asks = [ask(f"n{number}", most=5) for number in range(20)]
        calls = [each.ask(one_ask) for one_ask in asks for each in (one, two)]
        answers = await asyncio.gather(*calls)
        ledger = await bank.ledger()
    assert ledger.leased == 5
    assert ledger.waiting == 15
    assert answers.count("") == 2 * 5


async def test_a_process_that_dies_between_ask_and_answer_leaves_one_lease(server, tmp_path):
    async with banking(server.client, tmp_path) as bank:
        await bank.begin(Ledger())
        budget, recorded = TemporalBudget(lambda: server.client, bank.name), asyncio.Event()

        async def never_answers(batch: Batch) -> Answer:
            await budget.exchange(batch)
            recorded.set()
            return await asyncio.Future()

        dying = asyncio.create_task(Coalescer(never_answers).ask(ask("a")))
        await recorded.wait()
        dying.cancel()
        assert await bank.process().ask(ask("a")) == ""
        assert (await bank.ledger()).leased == 1


async def test_a_full_budget_still_takes_leases_back_and_whole_ledgers_fit_into_a_payload(
    server, tmp_path
):
    claims = tuple(Claim(f"{scope}/{'x' * 40}", 0) for scope in ("rack", "pool", "job/team"))
    long = "node/production-eu/ip-10-0-128-200.eu-central-1.compute.internal/0a1b2c3d"
    every = [
        Ask(f"{long}{n}", long, (*claims, Claim("cluster/c", 1)), LONG_AGO)
        for n in range(MOST_WAITING)
    ]
    full = Ledger((lent("a", "n1"),), tuple(every))
    payload = (await server.client.data_converter.encode([pack(full)]))[0]
    assert payload.ByteSize() < 2 * 1024 * 1024
    async with banking(server.client, tmp_path) as bank:
        await bank.begin(replace(full, leases=(replace(full.leases[0], looked=datetime.now(UTC)),)))
        process = bank.process()
        answers = await asyncio.gather(process.ask(ask("b")), process.give("a"))
        assert answers[0] == f"too many asks are waiting: {MOST_WAITING}"
        assert not (await bank.ledger()).leased
