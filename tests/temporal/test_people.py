"""People in a run on a real server: questions, their answers by update and by signal, skips, a dry
run, and the end that a person's yes leads to."""

from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from fleet.incident import End
from fleet.order import Said
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import DEADLINE
from fleet.step import Means, Step
from policies.document import load
from policies.schema import Policy
from tests.incidents.virtual import a_fault
from tests.temporal.fakes import Truth
from tests.temporal.running import Running, opened_now, running, soon_at_a_loss

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEMORY = a_fault("gpu:3", "memory-exhausted", "xid:64")
LINK = a_fault("nvlink:3/1", "nvlink-error")
ASKING = """
budgets: [{scope: cluster, max: 1}]
limits: {step_pause: 1s, look_again: 2s, pause: 20s, cool_down: 1s}
faults:
  memory-exhausted: {tolerate: 0s, steps: [replace], drain: {deadline: 30s}, probation: 1s}
  nvlink-error: {tolerate: 1h, steps: [reset-gpu, reboot], drain: {deadline: 30s}, probation: 1h}
approvals:
  - {step: replace, expires: 4h}
"""


def asking(more: str = "") -> Policy:
    return soon_at_a_loss(load(ASKING + more, "asking"))


def replaceable() -> Truth:
    """A sick node whose machine can be given back for another."""
    truth = Truth((MEMORY,))
    truth.scripts[Step.RECALL].append(Outcome(OutcomeKind.SUCCEEDED, means=(Means.REPLACE,)))
    return truth


async def question(run: Running) -> str:
    """The id of the question that waits, as the card shows it."""
    await run.reached("ask")
    plan = await run.handle.query("plan")
    return str(plan["next"]["id"])


async def refused(run: Running, verb: str, said: Said) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as problem:
        await run.handle.execute_update(verb, said)
    return str(problem.value.cause)


async def test_a_replacement_waits_for_a_yes_before_the_lease_and_ends_as_replaced(server):
    truth = replaceable()
    async with running(server.client, truth, asking()) as run:
        ask = await question(run)
        card = await run.card()
        assert f'`gpumend approve n1 --ask {ask} --reason "WHY"`' in card
        assert "memory-exhausted on gpu:3 (xid:64)" in card
        assert truth.steps() == ["hold", "recall", "verify"]
        assert ask in await refused(run, "approve", Said("eve", "yes", "replace-00000000"))
        assert ask in await refused(run, "approve", Said("eve", "yes"))
        await run.handle.execute_update("approve", Said("ada", "the spare is ready", ask))
        assert "decided already: approve by ada" in await refused(
            run, "deny", Said("bob", "no", ask)
        )
        closing = await run.result()
    assert closing.end is End.REPLACED
    assert truth.steps()[3:] == ["lease", "drain", "replace", "give-back"]


async def test_a_signal_denies_and_after_a_resume_a_signal_approves_what_is_asked_anew(server):
    truth = replaceable()
    async with running(server.client, truth, asking()) as run:
        first = await question(run)
        await run.handle.signal("approve", {"actor": "eve", "reason": "yes", "ask": "replace-1"})
        await run.handle.signal("deny", {"actor": "ada", "reason": "not today", "ask": first})
        await run.reached("hand-off")
        card = await run.card()
        assert f"signal approve by eve: the question that waits is {first}" in card
        assert "ada denied replace: not today" in card
        await run.order("resume")
        second = await question(run)
        assert second != first
        await run.handle.signal("approve", {"actor": "ada", "reason": "today", "ask": second})
        closing = await run.result()
    assert closing.end is End.REPLACED
    assert truth.steps().count("lease") == 1


async def test_a_no_by_update_hands_off_in_the_words_of_who_said_it_and_takes_nothing(server):
    truth = replaceable()
    async with running(server.client, truth, asking()) as run:
        ask = await question(run)
        await run.handle.execute_update("deny", Said("ada", "the vendor comes tomorrow", ask))
        await run.reached("hand-off")
        assert "ada denied replace: the vendor comes tomorrow" in await run.card()
        await run.order("cancel")
        closing = await run.result()
    assert closing.end is End.CANCELLED
    assert not {"lease", "drain", "replace"} & set(truth.steps())


async def test_no_answer_within_four_hours_is_a_no(server):
    skipper = TimeSkipper(server.client, config=TimeSkippingConfig(enabled=False))
    truth = replaceable()
    async with running(skipper.client, truth, asking()) as run:
        ask = await question(run)
        await skipper.fast_forward(run.handle, timedelta(hours=3, minutes=58))
        assert await run.stage() == "ask"
        await skipper.fast_forward(run.handle, timedelta(minutes=3))
        await run.reached("hand-off")
        assert "nobody answered within 4h whether replace may be done" in await run.card()
        late = await refused(run, "approve", Said("ada", "yes", ask))
        assert "no question waits" in late
        await run.order("cancel")
        closing = await run.result()
    assert closing.end is End.CANCELLED
    assert "lease" not in truth.steps()


async def test_a_drain_is_forced_on_a_persons_word_and_no_sooner(server):
    truth = replaceable()
    stuck = Outcome(OutcomeKind.PERMANENT, DEADLINE, "ml/train-0 (blocked: budget train, 0 left)")
    truth.scripts[Step.DRAIN].append(stuck)
    policy = asking().model_copy(update={"approvals": ()})
    async with running(server.client, truth, policy) as run:
        ask = await question(run)
        assert "ml/train-0 (blocked: budget train, 0 left)" in await run.card()
        assert truth.steps()[-2:] == ["drain", "give-back"]
        await run.handle.execute_update("approve", Said("ada", "the job is lost", ask))
        closing = await run.result()
    assert closing.end is End.REPLACED
    drains = [each for each in truth.performed if each.step is Step.DRAIN]
    assert [each.force for each in drains] == [False, True]


async def test_a_skip_ends_a_tolerance_leaves_out_a_repair_and_ends_a_probation(server):
    truth = Truth((LINK,), heals=(Step.REBOOT,))
    truth.drained.clear()
    async with running(server.client, truth, asking()) as run:
        await run.reached("tolerate")
        assert await run.order("skip") == "skip: taken, tolerate is left out"
        await run.until(truth.draining.is_set)
        assert await run.order("skip") == "skip: taken, reset-gpu is left out"
        truth.drained.set()
        await run.reached("probation")
        assert "in service already" in await refused(run, "release", Said("ada", "why"))
        assert await run.order("skip") == "skip: taken, probation is left out"
        closing = await run.result()
    assert closing.end is End.REPAIRED
    assert [each.step for each in closing.repairs] == [Step.REBOOT]


async def test_a_dry_run_touches_nothing_and_says_so(server):
    truth = replaceable()
    opening = replace(opened_now(), dry=True)
    policy = asking("dry_run: yes\n")
    async with running(server.client, truth, policy, opening) as run:
        assert run.handle.id.startswith("dry/")
        ask = await question(run)
        assert "### DRY RUN, nothing is touched: n1" in await run.card()
        await run.handle.execute_update("approve", Said("ada", "as we would", ask))
        await run.reached("hand-off")
        card = await run.card()
        assert "dry run: would drain n1" in card
        assert "nothing: this was a dry run, and every step was rehearsed" in card
        truth.faults = ()
        await truth.say()
        closing = await run.result()
    assert (closing.end, closing.repairs, closing.dry) == (End.RECOVERED, (), True)
    assert truth.steps() == ["recall"]
    assert truth.told == []
