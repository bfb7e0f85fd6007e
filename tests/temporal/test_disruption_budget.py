import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.adapters.temporal_budget import TemporalBudget
from activities.coalescer import Coalescer
from fleet import names
from fleet.census import Census
from fleet.order import Said
from policies.budget_use import CENSUS_GOOD_FOR
from policies.ledger import Ask, Claim, Ledger
from policies.ledger_archive import pack
from tests.temporal.running import LONGEST, record
from workflows.disruption_budget import DisruptionBudget
from workflows.sandbox import RUNNER

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Lender:
    """The budget's own activities, with a record of who was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.over: set[str] = set()
        self.lost: list[str] = []
        self.loses = False
        self.news = asyncio.Event()

    @activity.defn(name="grant")
    async def grant(self, incidents: list[str]) -> list[str]:
        if self.loses:
            self.lost += incidents
            self.news.set()
            raise ApplicationError("nobody hears it", non_retryable=True)
        self.told += incidents
        self.news.set()
        return [each for each in incidents if each in self.over]

    @activity.defn(name="look-at-leases")
    async def look(self, leases: dict[str, str]) -> dict[str, str]:
        return {each: "over" if each in self.over else "open" for each in leases}


def ask(incident: str, most: int = 1, scope: str = "cluster/c") -> Ask:
    return Ask(incident, incident, (Claim(scope, most),), datetime.now(UTC))


@asynccontextmanager
async def lending(
    client: Client, counted: bool = True
) -> AsyncIterator[tuple[Coalescer, Lender, str]]:
    cluster, lender = f"c-{uuid.uuid4()}", Lender()
    worker = Worker(
        client,
        task_queue=names.BUDGET_TASK_QUEUE,
        workflows=[DisruptionBudget],
        activities=[lender.grant, lender.look],
        workflow_runner=RUNNER,
    )
    async with worker, asyncio.timeout(LONGEST):
        budget = TemporalBudget(lambda: client, cluster)
        if counted:
            await budget.census(Census(datetime.now(UTC)))
        yield Coalescer(budget.exchange), lender, cluster
        await record(client.get_workflow_handle(names.budget_workflow_id(cluster)))


def handle(client: Client, cluster: str) -> WorkflowHandle[DisruptionBudget, None]:
    return client.get_workflow_handle_for(DisruptionBudget.run, names.budget_workflow_id(cluster))


async def test_the_first_ask_starts_the_budget_and_a_lease_given_back_goes_to_who_waits(server):
    async with lending(server.client) as (budget, lender, _):
        assert await budget.ask(ask("a")) == ""
        assert await budget.ask(ask("b")) == "cluster/c lends 1 at once"
        await budget.give("a")
        await lender.news.wait()
        assert lender.told == ["b"]
        assert await budget.ask(ask("b")) == ""


async def test_hundreds_of_asks_are_few_updates_and_never_more_than_the_maximum(server):
    async with lending(server.client) as (budget, _, cluster):
        answers = await asyncio.gather(*(budget.ask(ask(f"n{n}", 10)) for n in range(600)))
        ledger = await handle(server.client, cluster).query(DisruptionBudget.ledger)
        history = await handle(server.client, cluster).fetch_history()
    assert answers.count("") == 10
    assert ledger.leased == 10
    assert ledger.waiting == 590
    assert len(history.events) < 60


async def test_a_frozen_budget_grants_nothing_and_says_who_froze_it(server):
    async with lending(server.client) as (budget, lender, cluster):
        await budget.ask(ask("a"))
        budget_run = handle(server.client, cluster)
        with pytest.raises(WorkflowUpdateFailedError):
            await budget_run.execute_update("freeze", arg=Said("", "why"))
        await budget_run.execute_update("freeze", arg=Said("ada", "storm"))
        await budget.give("a")
        assert await budget.ask(ask("b")) == "frozen by ada: storm"
        await budget_run.execute_update("thaw", arg={"actor": "ada", "reason": "over"})
        await lender.news.wait()
        assert lender.told == ["b"]


async def test_a_ledger_is_carried_to_the_next_run(server):
    now = datetime.now(UTC)
    ledger = Ledger(waiting=(ask("w", 0, "rack/r"),), census=Census(now), counted=now)
    async with lending(server.client, counted=False) as (budget, _, cluster):
        await server.client.start_workflow(
            names.BUDGET_WORKFLOW,
            args=[pack(ledger)],
            id=names.budget_workflow_id(cluster),
            task_queue=names.BUDGET_TASK_QUEUE,
        )
        assert await budget.ask(ask("a")) == ""
        found = await handle(server.client, cluster).query(DisruptionBudget.ledger)
        assert [each.incident for each in found.queue] == ["w"]


async def test_an_old_census_grants_nothing_and_a_fresh_one_serves_who_waits(server):
    old = datetime.now(UTC) - 2 * CENSUS_GOOD_FOR
    async with lending(server.client, counted=False) as (budget, lender, cluster):
        told = TemporalBudget(lambda: server.client, cluster)
        await told.census(Census(old))
        assert "s old (at most 60 s)" in await budget.ask(ask("a"))
        await told.census(Census(datetime.now(UTC)))
        await lender.news.wait()
        assert lender.told == ["a"]
        assert await budget.ask(ask("a")) == ""


async def test_who_waits_and_asks_again_has_the_lease_though_nobody_could_tell_it(server):
    async with lending(server.client) as (budget, lender, _):
        lender.loses = True
        assert await budget.ask(ask("a")) == ""
        assert await budget.ask(ask("b")) != ""
        await budget.give("a")
        await lender.news.wait()
        assert (lender.lost, lender.told) == (["b"], [])
        assert await budget.ask(ask("b")) == ""
