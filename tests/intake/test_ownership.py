"""Who may take a hold away, and what happens when somebody does. Over real HTTP."""

from dataclasses import replace

import pytest

from fleet.mark import MarkState
from tests.intake.world import SICK

ID = "node/c/n1/"


async def an_owned_node(world):
    """A sick node, held, whose workflow has taken it up."""
    node = await world.marked("n1", MarkState.PENDING)
    await world.until(lambda: world.engine.heard("start"))
    await world.change("n1", mark=replace(node.mark, state=MarkState.OWNED))
    return await world.marked("n1", MarkState.OWNED)


async def test_a_hold_that_a_person_took_away_is_told_once_and_never_put_back(world):
    """R23."""
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await an_owned_node(world)
        await world.change("n1", taints=None)
        await world.until(lambda: world.engine.heard("hold-removed"))
        await world.swept(watcher, 3)
        node = await world.node("n1")
    assert node.hold is None
    assert node.mark.state is MarkState.OWNED
    told = world.engine.heard("hold-removed")
    assert [(uid, mark_removed) for _, uid, mark_removed in told] == [(node.identity.uid, False)]


async def test_the_hold_put_back_and_taken_away_again_is_told_again(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        hold = {"key": node.hold.key, "value": node.hold.value, "effect": node.hold.effect}
        await world.change("n1", taints=None)
        await world.until(lambda: len(world.engine.heard("hold-removed")) == 1)
        await world.change("n1", taints=[hold])
        await world.swept(watcher, 1)
        await world.change("n1", taints=None)
        await world.until(lambda: len(world.engine.heard("hold-removed")) == 2)


async def test_a_hold_that_is_back_before_anybody_could_be_told_was_never_gone(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        hold = {"key": node.hold.key, "value": node.hold.value, "effect": node.hold.effect}
        world.engine.away = True
        await world.change("n1", taints=None)
        await world.until(lambda: watcher.term.delivery.counts.failures >= 1)
        await world.change("n1", taints=[hold])
        await world.until(lambda: world.seen(watcher))
        world.engine.away = False
        await world.until(lambda: watcher.term.delivery.waiting == 0)
    assert not world.engine.heard("hold-removed")


async def test_a_hold_left_on_a_node_that_we_must_keep_off_is_said_once(world, caplog):
    hold = {"key": "gpumend.io/hold", "value": "gpu-lost", "effect": "NoSchedule"}
    await world.add_node("n1", SICK, taints=[hold])
    await world.change("n1", **{"gpumend.io/pause": "being rewired"})
    before = len(world.patches())
    async with world.watching() as watcher:
        await world.swept(watcher, 3)
    assert len(world.patches()) == before
    assert caplog.text.count("did=hold-left node=n1 because=paused") == 1


async def test_hold_and_mark_both_removed_cancel_and_begin_a_cool_down(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await an_owned_node(world)
        await world.change("n1", taints=None, mark=None)
        await world.until(lambda: world.engine.heard("hold-removed"))
        world.engine.open.clear()
        await world.swept(watcher)
        node = await world.node("n1")
        assert (node.hold, node.mark) == (None, None)
        assert node.cool_down is not None
        assert world.engine.heard("hold-removed")[0][2] is True
        world.clock.skip(minutes=61)
        again = await world.marked("n1", MarkState.PENDING)
        assert again.cool_down is None


async def test_a_cool_down_outlives_the_watcher(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        await an_owned_node(world)
        await world.change("n1", taints=None, mark=None)
        await world.until(lambda: world.engine.heard("hold-removed"))
    async with world.watching() as watcher:
        await world.swept(watcher, 3)
        node = await world.node("n1")
    assert (node.hold, node.mark) == (None, None)


async def test_a_pending_hold_taken_away_by_a_person_is_not_taken_up(world):
    await world.add_node("n1", SICK)
    world.engine.away = True
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.change("n1", taints=None)
        await world.until(lambda: cooling(world))
        world.engine.away = False
        await world.swept(watcher)
    assert not world.engine.heard("start")
    assert (await world.node("n1")).hold is None


async def test_a_mark_that_a_workflow_takes_off_after_probation_starts_no_cool_down(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        await world.say("n1")
        await world.change("n1", taints=None, mark=replace(node.mark, state=MarkState.PROBATION))
        await world.swept(watcher)
        await world.change("n1", mark=None)
        world.engine.open.clear()
        await world.swept(watcher, 3)
        node = await world.node("n1")
    assert (node.mark, node.hold, node.cool_down) == (None, None, None)
    assert not world.engine.heard("hold-removed")


async def test_foreign_cordons_and_taints_that_come_and_go_mean_nothing(world):
    """R22."""
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        hold = {"key": node.hold.key, "value": node.hold.value, "effect": node.hold.effect}
        theirs = {"key": "team", "value": "x", "effect": "NoSchedule"}
        patches = len(world.patches())
        await world.change("n1", taints=[theirs, hold])
        await world.swept(watcher)
        await world.change("n1", taints=[hold])
        await world.swept(watcher)
    assert len(world.patches()) == patches + 2
    assert not world.engine.heard("hold-removed")


async def test_a_hold_whose_mark_was_lost_is_adopted(world):
    hold = {"key": "gpumend.io/hold", "value": "thermal", "effect": "NoSchedule"}
    await world.add_node("n1", taints=[hold])
    async with world.watching():
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
    assert node.hold.value == "thermal"


async def test_a_mark_that_cannot_be_read_is_said_and_left_alone(world, caplog):
    await world.add_node("n1", SICK)
    await world.change("n1", **{"gpumend.io/incident": "{broken"})
    async with world.watching() as watcher:
        await world.swept(watcher)
    assert "did=cannot-read-mark node=n1" in caplog.text
    assert len(world.patches()) == 1


async def test_a_hold_nobody_took_up_is_taken_back_when_the_node_was_clean_long_enough(world):
    await world.add_node("n1", SICK, unschedulable=True)
    world.engine.away = True
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.say("n1")
        await world.swept_without_engine(watcher)
        assert (await world.node("n1")).mark is not None
        world.clock.skip(minutes=5)
        await world.until(lambda: free(world))
        world.engine.away = False
        await world.swept(watcher)
        node = await world.node("n1")
    assert node.unschedulable
    assert node.cool_down is None
    assert not world.engine.heard("start")


@pytest.mark.parametrize("boot_id", ["b2", ""])
async def test_a_node_without_a_witness_of_its_boot_is_never_given_back(world, boot_id):
    await world.add_node("n1", SICK)
    world.engine.away = True
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.rebooted("n1", boot_id)
        world.clock.skip(minutes=9)
        await world.swept_without_engine(watcher)
        world.clock.skip(minutes=9)
        await world.swept_without_engine(watcher)
        assert (await world.node("n1")).mark is not None


async def cooling(world):
    return (await world.node("n1")).cool_down is not None


async def free(world):
    node = await world.node("n1")
    return node.mark is None and node.hold is None
