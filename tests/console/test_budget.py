"""The disruption budget from a shell."""

import uuid
from datetime import UTC, datetime

import pytest
from temporalio.worker import Worker

from activities.adapters.temporal_budget import TemporalBudget
from fleet.names import budget_workflow_id
from policies.exchange import Batch
from policies.ledger import Ask, Claim
from workflows.disruption_budget import DisruptionBudget
from workflows.sandbox import RUNNER

pytestmark = pytest.mark.asyncio(loop_scope="session")


def an_ask(node):
    return Ask(f"node/c/{node}/m1", node, (Claim("rack/r7", 1),), datetime.now(UTC))


async def test_a_budget_is_shown_frozen_and_thawed(server, command, at_temporal):
    at_temporal(server)
    name = f"c-{uuid.uuid4()}"
    budget = TemporalBudget(lambda: server.client, name)
    worker = Worker(
        server.client,
        task_queue="gpumend-budget",
        workflows=[DisruptionBudget],
        workflow_runner=RUNNER,
    )
    async with worker:
        asks = (an_ask("n1"), an_ask("n2"))
        await budget.exchange(Batch(asks))
        shown = await command("budget", "show", "--cluster", name, "--json")
        assert shown.status == 0, shown.err
        assert shown.json["leased"] + shown.json["waiting"] == 2
        text = (await command("budget", "show", "--cluster", name)).out
        assert "rack/r7" in text
        assert "n2" in text
        words = ("--cluster", name, "--reason", "power work", "--actor", "ada")
        frozen = await command("budget", "freeze", *words)
        assert (frozen.status, frozen.out[:6]) == (0, "frozen"), frozen.err
        assert "by ada: power work" in (await command("budget", "show", "--cluster", name)).out
        assert (await command("budget", "thaw", *words, "--json")).json == {
            "answer": "thawed by ada"
        }
        await server.client.get_workflow_handle(budget_workflow_id(name)).terminate()


async def test_a_cluster_without_a_budget_is_said_to_have_none(server, command, at_temporal):
    at_temporal(server)
    ended = await command("budget", "show", "--cluster", "c-none")
    assert ended.status == 2
    assert "cluster c-none has no budget yet" in ended.err


async def test_a_freeze_needs_a_reason(command):
    assert (await command("budget", "freeze")).status == 2
