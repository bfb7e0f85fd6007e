"""On a server that asks for a new run every thirty events: nothing is lost in going on."""

import asyncio
import gc
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.temporal_budget import TemporalBudget
from activities.adapters.temporal_memory import TemporalMemory
from activities.coalescer import Coalescer
from activities.search_attributes import KEYS
from fleet import names
from fleet.incident import End
from fleet.order import Said
from fleet.outcome import PastAttempt
from fleet.step import Step
from policies.ledger import Ask, Claim
from tests.incidents.virtual import a_fault
from tests.temporal.conftest import TIMERS
from tests.temporal.fakes import Truth
from tests.temporal.running import LONGEST, running
from tests.temporal.test_disruption_budget import lending
from tests.temporal.test_people import asking, replaceable
from workflows.disruption_budget import DisruptionBudget

pytestmark = pytest.mark.asyncio(loop_scope="module")
SOON = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=30")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def impatient(temporal_binary: str) -> AsyncIterator[WorkflowEnvironment]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary,
        dev_server_extra_args=[*TIMERS, *SOON],
        dev_server_log_level="error",
        data_converter=DATA_CONVERTER,
        search_attributes=KEYS,
    )
    try:
        yield environment
    finally:
        await environment.shutdown()
        del environment
        gc.collect()


async def test_what_was_told_in_one_run_is_not_told_by_the_next(impatient):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(impatient.client, truth) as run:
        await run.until(lambda: bool(truth.told))
        first = run.handle.first_execution_run_id

        async def moved() -> bool:
            await truth.say()
            return (await run.handle.describe()).run_id != first

        await run.until(moved)
        await run.order("cancel")
        await run.handle.result()
    assert len(truth.told) == 1


async def test_an_incident_goes_on_over_several_runs(impatient):
    truth = Truth((a_fault("gpu:3", "uncontained-memory"),), heals=(Step.REBOOT,))
    async with running(impatient.client, truth) as run:
        first = run.handle.first_execution_run_id
        closing = await run.result()
        described = await impatient.client.get_workflow_handle(run.handle.id).describe()
    assert described.run_id != first
    assert closing.end is End.REPAIRED
    assert [each.step for each in closing.repairs] == [Step.RESET_GPU, Step.REBOOT]
    assert truth.steps().count("reboot") == 1
    assert len({each.operation for each in truth.performed}) == len(truth.performed)


async def test_a_budget_keeps_its_ledger_over_several_runs(impatient):
    def ask(number: int) -> Ask:
        claims = (Claim("cluster/c", 5),)
        return Ask(f"n{number:02}", "n", claims, datetime.now(UTC))

    async with lending(impatient.client) as (budget, _, cluster):
        answers = [await budget.ask(ask(number)) for number in range(30)]
        handle = impatient.client.get_workflow_handle_for(
            DisruptionBudget.run, names.budget_workflow_id(cluster)
        )
        for number in range(5):
            await budget.give(f"n{number:02}")
        ledger = await handle.query(DisruptionBudget.ledger)
        described = await handle.describe()
    assert answers.count("") == 5
    assert [each.incident for each in ledger.leases] == [f"n{n:02}" for n in range(5, 10)]
    assert ledger.waiting == 20
    assert described.raw_description.workflow_execution_info.first_run_id != described.run_id


async def test_asks_of_two_processes_are_all_answered_while_the_run_goes_on_ten_times(impatient):
    def asks(of: str, number: int) -> list[Ask]:
        claims, now = (Claim("cluster/c", 5),), datetime.now(UTC)
        return [Ask(f"{of}-{number}-{n}", f"{of}-{number}-{n}", claims, now) for n in range(3)]

    async with lending(impatient.client) as (one, _, cluster):
        two = Coalescer(TemporalBudget(lambda: impatient.client, cluster).exchange)
        handle = impatient.client.get_workflow_handle_for(
            DisruptionBudget.run, names.budget_workflow_id(cluster)
        )
        answers: list[str] = []
        runs: set[str | None] = set()
        while len(runs) <= 10:
            number = len(answers)
            both = [one.ask(each) for each in asks("a", number)]
            both += [two.ask(each) for each in asks("b", number)]
            answers += await asyncio.gather(*both)
            runs.add((await handle.describe()).run_id)
        ledger = await handle.query(DisruptionBudget.ledger)
    assert answers.count("") == 5 == ledger.leased
    assert ledger.waiting == len(answers) - 5


async def test_weeks_of_reports_in_a_hand_off_are_many_short_runs_and_one_hand_off(impatient):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(impatient.client, truth) as run:
        await run.reached("hand-off")
        handle = impatient.client.get_workflow_handle(run.handle.id)

        async def moved() -> bool:
            await handle.signal("report", truth.report())
            described = await handle.describe()
            return bool(described.run_id != run.handle.first_execution_run_id)

        await run.until(moved)
        needs = (await handle.query("plan"))["next"]["needs"]
        assert "the policy lists no step" in needs[0]
        await handle.execute_update("release", {"actor": "ada", "reason": "cool again"})
        closing = await run.result()
    assert closing.end is End.HANDED_OFF
    assert truth.steps() == ["hold", "release", "close"]


async def test_a_storm_of_signals_between_two_looks_loses_none(impatient):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(impatient.client, truth) as run:
        await run.reached("hand-off")
        handle = impatient.client.get_workflow_handle(run.handle.id)
        await asyncio.gather(*(handle.signal("report", truth.report()) for _ in range(60)))
        await handle.signal("node-gone", "")
        closing = await run.result()
    assert closing.end is End.SUPERSEDED


async def test_attempts_of_a_run_that_went_on_and_was_terminated_are_all_remembered(impatient):
    truth = Truth((a_fault("gpu:3", "uncontained-memory"),))
    async with running(impatient.client, truth) as run:
        await run.until(lambda: truth.steps().count("reboot") == 1)
        await run.reached("hand-off")
        handle = impatient.client.get_workflow_handle(run.handle.id)
        assert (await handle.describe()).run_id != run.handle.first_execution_run_id
        await handle.terminate()
        memory = TemporalMemory(impatient.client)
        past: tuple[PastAttempt, ...] = ()
        async with asyncio.timeout(LONGEST):
            while not past:
                past = await memory.past_attempts(run.handle.id)
    assert sorted(each.step for each in past) == [Step.REBOOT, Step.RESET_GPU]


async def test_a_question_keeps_its_id_and_its_time_over_several_runs(impatient):
    truth = replaceable()
    async with running(impatient.client, truth, asking()) as run:
        await run.reached("ask")
        handle = impatient.client.get_workflow_handle(run.handle.id)
        before = (await handle.query("plan"))["next"]
        await handle.signal("approve", {"actor": "eve", "reason": "yes", "ask": "replace-1"})

        async def moved() -> bool:
            await handle.signal("report", truth.report())
            described = await handle.describe()
            return bool(described.run_id != run.handle.first_execution_run_id)

        await run.until(moved)
        after = (await handle.query("plan"))["next"]
        assert (after["id"], after["until"]) == (before["id"], before["until"])
        assert "signal approve by eve" in await run.card()
        await handle.execute_update("approve", Said("ada", "go on", before["id"]))
        closing = await run.result()
    assert closing.end is End.REPLACED
