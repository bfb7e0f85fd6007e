"""Marks and runs that lost each other, nodes that go and come back. Over real HTTP."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.mark import MarkState
from tests.intake.test_ownership import an_owned_node, free
from tests.intake.world import QUICK, SICK, thermal


async def test_a_mark_whose_run_is_gone_goes_back_to_pending_and_the_next_run_adopts_it(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        node = await an_owned_node(world)
        await world.change("n1", mark=replace(node.mark, state=MarkState.OWNED, undo=("x", "y")))
        world.engine.open.clear()
        again = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 2)
    assert again.mark.id == node.mark.id
    assert again.mark.undo == ("x", "y")


async def test_a_run_that_the_list_forgot_is_asked_and_left_alone(world):
    await world.add_node("n1", SICK)
    world.engine.open_ids = lagging(world.engine)
    async with world.watching() as watcher:
        await an_owned_node(world)
        await world.swept(watcher, 3)
    assert world.engine.heard("is-open")
    assert (await world.node("n1")).mark.state is MarkState.OWNED


async def test_a_closed_incident_is_noticed_when_a_report_finds_nobody(world):
    await world.add_node("n1", SICK)
    patient = replace(QUICK, compare_every=timedelta(hours=1))
    async with world.watching(settings=patient):
        await an_owned_node(world)
        world.engine.open.clear()
        await world.say("n1", SICK, thermal())
        await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 2)


async def test_what_people_have_soon_counts_no_more_as_sick(world):
    await world.add_node("n1", SICK, labels={"gpumend.io/pool": "x"})
    rare, soon = timedelta(hours=1), timedelta(seconds=0.05)
    settings = replace(QUICK, compare_every=rare, hand_offs_every=soon)
    async with world.watching(settings=settings) as watcher:
        await an_owned_node(world)
        muster = watcher.term.breaker.muster
        await world.until(lambda: muster.count("pool/x").sick == 1)
        world.engine.handed_off |= world.engine.open
        await world.until(lambda: muster.count("pool/x").sick == 0)
        assert watcher.term.comparison.rounds == 1


@pytest.mark.parametrize("sick", [True, False])
async def test_a_node_in_probation_whose_run_is_gone_is_held_if_sick_and_else_free(world, sick):
    await world.add_node("n1", SICK)
    async with world.watching():
        node = await an_owned_node(world)
        if not sick:
            await world.say("n1")
        await world.change("n1", taints=None, mark=replace(node.mark, state=MarkState.PROBATION))
        world.engine.open.clear()
        if sick:
            again = await world.marked("n1", MarkState.PENDING)
            assert (again.mark.id, again.hold.value) == (node.mark.id, "gpu-lost")
        else:
            await world.until(lambda: free(world))


async def test_a_pending_mark_is_repeated_until_it_is_taken_up(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 1)
        world.clock.skip(seconds=30)
        await world.until(lambda: len(world.engine.heard("start")) == 2)
        await world.change("n1", mark=replace(node.mark, state=MarkState.OWNED))
        await world.swept(watcher)
        world.clock.skip(seconds=30)
        await world.swept(watcher)
    assert len(world.engine.heard("start")) == 2


async def test_a_deleted_node_is_told_to_its_incident(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        node = await an_owned_node(world)
        await world.delete("n1")
        await world.until(lambda: world.engine.heard("node-gone"))
    assert world.engine.heard("node-gone")[0][1] == node.identity.uid


async def test_a_reborn_machine_is_held_again_under_the_same_incident_though_it_says_it_is_well(
    world,
):
    await world.add_node("n1", SICK, machine="m1")
    async with world.watching():
        node = await an_owned_node(world)
        await world.delete("n1")
        await world.until(lambda: world.engine.heard("node-gone"))
        await world.add_node("n1", machine="m1")
        again = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 2)
    first, second = (opening for _, opening, _ in world.engine.heard("start"))
    assert again.identity.uid != node.identity.uid
    assert again.hold.value == "gpu-lost"
    assert first.workflow_id == second.workflow_id


async def test_a_reborn_machine_whose_incident_is_closed_is_a_node_like_any_other(world):
    await world.add_node("n1", SICK, machine="m1")
    async with world.watching() as watcher:
        await an_owned_node(world)
        await world.delete("n1")
        await world.until(lambda: world.engine.heard("node-gone"))
        world.engine.open.clear()
        await world.add_node("n1", machine="m1")
        await world.swept(watcher, 3)
        assert await free(world)


async def test_another_machine_under_the_old_name_is_a_node_of_its_own(world):
    """R12."""
    await world.add_node("n1", SICK, machine="m1")
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        await world.delete("n1")
        await world.add_node("n1", machine="m2")
        await world.until(lambda: world.engine.heard("node-gone"))
        await world.swept(watcher, 3)
        assert await free(world)
        await world.say("n1", SICK)
        other = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 2)
    first, second = (opening.workflow_id for _, opening, _ in world.engine.heard("start"))
    assert first != second
    assert other.identity.machine != node.identity.machine
    assert {workflow for workflow, _ in world.engine.heard("node-gone")} == {first}


async def test_a_deletion_in_a_gap_of_the_watch_is_seen_by_absence(world):
    """R34."""
    await world.add_node("n1", SICK)
    await world.add_node("n2")
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        await world.swept(watcher, 1)
        await world.gap()
        await world.delete("n1")
        world.server.compact()
        await world.until(lambda: world.engine.heard("node-gone"))
        assert watcher.term.nodes.counts.expired >= 1
    assert world.engine.heard("node-gone")[0][1] == node.identity.uid


async def test_a_deletion_that_nobody_saw_is_found_by_comparing(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        await an_owned_node(world)
    await world.delete("n1")
    async with world.watching():
        await world.until(lambda: world.engine.heard("node-gone"))
    workflow, uid = world.engine.heard("node-gone")[0]
    assert (workflow in world.engine.open, uid) == (True, "")


async def test_a_machine_reborn_while_nobody_watched_is_held_again(world):
    await world.add_node("n1", SICK, machine="m1")
    async with world.watching():
        await an_owned_node(world)
    await world.delete("n1")
    await world.add_node("n1", machine="m1")
    async with world.watching():
        await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.heard("start")) == 2)


async def test_a_mark_copied_from_another_machine_is_dropped(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        node = await an_owned_node(world)
    await world.add_node("n2")
    await world.change("n2", mark=node.mark)
    async with world.watching():

        async def unmarked():
            return (await world.node("n2")).mark is None

        await world.until(unmarked)


async def test_a_node_whose_run_took_the_mark_off_and_has_not_ended_yet_is_not_held_again(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await an_owned_node(world)
        await world.say("n1")
        await world.change("n1", mark=replace(node.mark, state=MarkState.PROBATION), taints=None)
        await world.marked("n1", MarkState.PROBATION)
        await world.change("n1", mark=None)
        held = len(world.patches())
        await world.swept(watcher, 4)
    assert (await world.node("n1")).mark is None
    assert len(world.patches()) == held


def lagging(engine):
    async def open_ids():
        return frozenset()

    return open_ids
