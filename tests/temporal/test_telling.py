"""What people are told by a run: each thing once, and never in the way of anything."""

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError

from fleet.incident import End
from fleet.telling import Matter, Telling
from tests.incidents.virtual import a_fault
from tests.temporal.fakes import FakeActivities, Truth
from tests.temporal.running import running

pytestmark = pytest.mark.asyncio(loop_scope="session")
THERMAL = a_fault("host", "thermal")
MEMORY = a_fault("gpu:3", "uncontained-memory")


async def test_a_hand_off_is_told_once_and_again_only_when_it_is_another(server):
    truth = Truth((THERMAL,))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        await run.until(lambda: len(truth.told) == 1)
        truth.faults = (THERMAL, a_fault("gpu:1", "thermal"))
        await truth.say()
        await run.order("resume")
        await run.until(lambda: len(truth.told) == 2)
        await run.order("cancel")
        await run.result()
    first, second = truth.told
    assert first.matter is second.matter is Matter.HAND_OFF
    assert first.key != second.key
    assert "the policy lists no step" in first.lines[0]
    assert first.faults[0].name == "thermal"


async def test_a_question_is_told_with_its_answers_and_until_when(server):
    truth = Truth((MEMORY,))
    truth.drained.clear()
    async with running(server.client, truth) as run:
        await run.until(truth.draining.is_set)
        await run.order("pause", reason="let me look")
        await run.until(lambda: bool(truth.told))
        await truth.say()
        await run.order("cancel")
        await run.result()
    assert len(truth.told) == 1
    told = truth.told[0]
    assert told.matter is Matter.ASK
    assert "let me look" in told.lines[0]
    assert "resume" in told.answers
    assert told.until is not None
    assert run.handle.id.startswith(told.workflow_id)


async def test_what_nobody_can_be_told_holds_nothing_up(server, monkeypatch):
    @activity.defn(name="tell")
    async def refuse(self: FakeActivities, telling: Telling) -> bool:
        self.truth.told.append(telling)
        raise ApplicationError("nobody there", type="Refused", non_retryable=True)

    monkeypatch.setattr(FakeActivities, "hear", refuse)
    truth = Truth((THERMAL,))
    async with running(server.client, truth) as run:
        await run.until(lambda: bool(truth.told))
        await run.order("release", reason="the room is cool again")
        assert (await run.result()).end is End.HANDED_OFF
