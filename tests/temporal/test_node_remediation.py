import pytest
from temporalio.client import WorkflowUpdateFailedError

from fleet.incident import End
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import QUEUED
from fleet.step import Step
from policies import decide as deciding
from policies.document import load
from tests.incidents.virtual import a_fault
from tests.temporal.fakes import Truth
from tests.temporal.running import HURRIED, running, soon_at_a_loss

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEMORY = a_fault("gpu:3", "uncontained-memory")


async def test_a_fault_that_a_reset_repairs_ends_as_repaired(server):
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    async with running(server.client, truth) as run:
        closing = await run.result()
    assert closing.end is End.REPAIRED
    assert [each.step for each in closing.repairs] == [Step.RESET_GPU]
    assert truth.steps() == [
        *("hold", "recall", "verify", "lease", "drain", "reset-gpu", "verify"),
        *("release", "close"),
    ]


async def test_a_short_step_that_does_not_succeed_at_once_is_done_by_an_activity(server):
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,), away={Step.HOLD, Step.CLOSE})
    async with running(server.client, truth) as run:
        assert (await run.result()).end is End.REPAIRED
        history = await run.handle.fetch_history()
    asked = [each.activity_task_scheduled_event_attributes for each in history.events]
    names = [each.activity_type.name for each in asked if each.activity_type.name]
    assert [names[0], names[-1]] == ["hold", "close"]
    assert "recall" not in names
    assert truth.steps().count("hold") == 2
    assert len({each.operation for each in truth.performed if each.step is Step.HOLD}) == 1


async def test_a_hold_after_a_release_is_on_record_before_it_is_done(server):
    """Forgotten with its worker, it would stand where a close expects none."""
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    policy = soon_at_a_loss(load(HURRIED.replace("probation: 1s", "probation: 1h"), "watchful"))
    async with running(server.client, truth, policy) as run:
        await run.reached("probation")
        truth.faults = (MEMORY,)
        await truth.say()
        await run.until(lambda: truth.steps().count("hold") == 2)
        await run.order("cancel")
        assert (await run.result()).end is End.CANCELLED
        history = await run.handle.fetch_history()
    asked = [each.activity_task_scheduled_event_attributes for each in history.events]
    assert [each.activity_type.name for each in asked].count("hold") == 1


async def test_a_reset_that_heals_nothing_is_followed_by_a_reboot(server):
    truth = Truth((MEMORY,), heals=(Step.REBOOT,))
    async with running(server.client, truth) as run:
        closing = await run.result()
    assert [each.step for each in closing.repairs] == [Step.RESET_GPU, Step.REBOOT]


async def test_a_link_that_heals_within_its_tolerance_is_given_back_untouched(server):
    truth = Truth((a_fault("nvlink:3/1", "nvlink-error"),))
    async with running(server.client, truth) as run:
        await run.reached("tolerate")
        truth.faults = ()
        await truth.say()
        closing = await run.result()
    assert closing.end is End.RECOVERED
    assert truth.steps() == ["hold", "release", "close"]


async def test_a_cancel_stops_a_drain_that_is_under_way(server):
    truth = Truth((MEMORY,))
    truth.drained.clear()
    async with running(server.client, truth) as run:
        await run.until(truth.draining.is_set)
        assert await run.order("cancel") == "cancel: taken"
        closing = await run.result()
    assert closing.end is End.CANCELLED
    assert truth.steps()[-2:] == ["release", "close"]
    assert "reset-gpu" not in truth.steps()


async def test_a_hand_off_stays_open_until_a_person_says(server):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        plan = await run.handle.query("plan")
        assert "the policy lists no step" in plan["next"]["needs"][0]
        await run.order("release", reason="the room is cool again")
        closing = await run.result()
    assert closing.end is End.HANDED_OFF


async def test_who_goes_on_after_a_hand_off_is_listed_so_before_it_asks_for_a_lease(server):
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    truth.scripts[Step.LEASE].append(Outcome(OutcomeKind.PERMANENT, "refused"))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        await run.order("resume")
        assert (await run.result()).end is End.HANDED_OFF
        history = await run.handle.fetch_history()
    last = ""
    for event in history.events:
        shown = event.upsert_workflow_search_attributes_event_attributes.search_attributes
        step = shown.indexed_fields.get("Step")
        last = step.data.decode().strip('"') if step else last
        asked = event.activity_task_scheduled_event_attributes.activity_type.name
        assert (asked, last) not in (("lease", "hand-off"), ("verify", "hand-off"))


async def test_an_order_that_makes_no_sense_is_refused_and_leaves_no_trace(server):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        for verb, actor, reason in (("resume", "", "x"), ("pause", "ada", " ")):
            with pytest.raises(WorkflowUpdateFailedError):
                await run.order(verb, actor, reason)
        history = await run.handle.fetch_history()
        assert not [e for e in history.events if "update" in str(e.WhichOneof("attributes"))]
        await run.order("cancel")
        assert (await run.result()).end is End.CANCELLED


MALFORMED: tuple[list[object], ...] = (
    [],
    ["ada", "why"],
    ["ada"],
    [{"actor": "ada", "reason": 1}],
    [{"who": "ada"}],
    [None],
)


async def test_malformed_input_is_refused_or_ignored_in_words_and_never_stops_the_run(server):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        for given in MALFORMED:
            for verb in ("pause", "approve"):
                with pytest.raises(WorkflowUpdateFailedError) as refused:
                    await run.handle.execute_update(verb, args=given)
                assert "actor" in str(refused.value.cause)
                assert "TypeError" not in str(refused.value.cause)
            await run.handle.signal("approve", args=given)
        for signal, odd in (("node-gone", []), ("hold-removed", ["u1"]), ("grant", ["x", "y"])):
            await run.handle.signal(signal, args=odd)
        await run.handle.signal("deny", {"actor": "eve", "reason": "no", "ask": "x"})
        card = await run.card()
        assert "signal deny by eve: no question waits for a yes or a no" in card
        assert "signal node_gone: missing a required argument: 'uid'" in card
        await run.order("cancel")
        assert (await run.result()).end is End.CANCELLED


async def test_a_pause_holds_everything_until_resumed(server):
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    truth.drained.clear()
    async with running(server.client, truth) as run:
        await run.until(truth.draining.is_set)
        await run.order("pause")
        await run.reached("ask")
        truth.drained.set()
        await run.order("resume")
        assert (await run.result()).end is End.REPAIRED


async def test_a_deleted_node_ends_its_incident_as_superseded(server):
    truth = Truth((MEMORY,))
    truth.drained.clear()
    async with running(server.client, truth) as run:
        await run.until(truth.draining.is_set)
        await run.handle.signal("node-gone", "u1")
        closing = await run.result()
    assert closing.end is End.SUPERSEDED
    assert truth.steps()[-1] == "give-back"


async def test_a_queued_ask_is_answered_by_a_grant(server):
    truth = Truth((MEMORY,), heals=(Step.RESET_GPU,))
    truth.scripts[Step.LEASE].append(Outcome(OutcomeKind.TRANSIENT, QUEUED))
    async with running(server.client, truth) as run:
        await run.reached("lease")
        await run.handle.signal("grant")
        assert (await run.result()).end is End.REPAIRED
    assert truth.steps().count("lease") == 2


async def test_the_card_says_why_a_node_is_held_and_what_is_needed(server):
    truth = Truth((a_fault("host", "thermal"),))
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        card = await run.card()
        for words in ("thermal on host", "handed to a person", "Needed from you", "release"):
            assert words in card
        await run.order("cancel")
        await run.result()


async def test_an_engine_that_cannot_decide_hands_off(server, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    truth = Truth((MEMORY,))
    monkeypatch.setattr(deciding, "decide", broken)
    async with running(server.client, truth) as run:
        await run.reached("hand-off")
        monkeypatch.undo()
        await run.order("cancel")
        assert (await run.result()).end is End.CANCELLED


async def test_an_engine_that_cannot_decide_gives_its_lease_back_and_hands_off(server, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    truth = Truth((MEMORY,))
    truth.drained.clear()
    async with running(server.client, truth) as run:
        await run.until(truth.draining.is_set)
        monkeypatch.setattr(deciding, "decide", broken)
        truth.drained.set()
        await run.reached("hand-off")
        assert truth.steps()[-2:] == ["drain", "give-back"]
        monkeypatch.undo()
        await run.order("cancel")
        assert (await run.result()).end is End.CANCELLED
