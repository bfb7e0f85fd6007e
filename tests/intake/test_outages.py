"""Temporal or the API server away, watches that break, leaders that die. Over real HTTP."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.mark import MarkState
from simulator.apiserver.injection import Fault
from tests.intake.world import QUICK, SICK, thermal


async def test_while_temporal_is_away_nodes_are_held_and_nothing_is_lost(world, caplog):
    caplog.set_level(logging.INFO, "gpumend.watcher")
    world.engine.away = True
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: watcher.term.delivery.counts.failures >= 3)
        await world.add_node("n2", thermal())
        await world.marked("n2", MarkState.PENDING)
        world.engine.away = False
        await world.until(lambda: len(world.engine.heard("start")) == 2)
    assert caplog.text.count("did=temporal-is-away") == 1
    assert caplog.text.count("did=temporal-is-back") == 1


async def test_a_start_that_temporal_refuses_is_said_and_tried_again_and_stops_nobody_else(
    world, caplog
):
    world.engine.refused = "n1"
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: watcher.term.delivery.counts.failures >= 2)
        await world.add_node("n2", thermal())
        await world.until(lambda: world.engine.heard("start"))
        world.engine.refused = ""
        await world.until(lambda: len(world.engine.heard("start")) == 2)
    assert caplog.text.count("did=temporal-refuses") == 1


async def test_what_temporal_missed_is_told_when_it_is_back(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
        await world.change("n1", mark=replace(node.mark, state=MarkState.OWNED))
        await world.swept(watcher, 1)
        world.engine.away = True
        await world.delete("n1")
        await world.until(lambda: watcher.term.delivery.counts.failures >= 1)
        world.engine.away = False
        await world.until(lambda: world.engine.heard("node-gone"))
        await world.until(lambda: watcher.term.delivery.waiting == 0)


async def test_a_watch_that_breaks_is_resumed_and_an_expired_one_is_listed_again(world):
    await world.add_node("n1")
    async with world.watching() as watcher:
        await world.swept(watcher, 1)
        world.server.close_watches()
        await world.say("n1", SICK)
        await world.marked("n1", MarkState.PENDING)
        lists = watcher.term.nodes.counts.lists
        await world.gap()
        await world.add_node("n2", SICK)
        world.server.compact()
        await world.marked("n2", MarkState.PENDING)
        assert watcher.term.nodes.counts.lists > lists


async def test_an_api_server_that_fails_for_a_while_is_waited_out(world, caplog):
    caplog.set_level(logging.INFO, "gpumend.watcher")
    await world.add_node("n1", SICK)
    world.server.faults.order(
        Fault(path="/api/v1/nodes$", times=10, code=500, reason="InternalError")
    )
    async with world.watching():
        await world.marked("n1", MarkState.PENDING)
    assert caplog.text.count("did=cannot-watch path=/api/v1/nodes") == 1
    assert "did=watching-again path=/api/v1/nodes" in caplog.text


async def test_a_continue_token_that_expires_starts_the_list_again_with_larger_pages(world):
    for number in range(5):
        await world.add_node(f"n{number}", SICK)
    world.server.faults.order(
        Fault(verb="list", path="/nodes$", code=410, reason="Expired", times=1)
    )
    small = replace(QUICK, page_size=1, page_growth=3)
    async with world.watching(settings=small) as watcher:
        for number in range(5):
            await world.marked(f"n{number}", MarkState.PENDING)
        assert watcher.term.nodes.counts.expired == 1


async def test_of_two_watchers_one_leads_and_the_other_takes_over(world):
    await world.add_node("n1")
    async with world.watching() as first:
        await world.until(lambda: first.leading)
        async with world.watching() as second:
            await world.swept(first, 2)
            assert not second.leading
            await world.patch_lease(holderIdentity="nobody", leaseDurationSeconds=1)
            await world.until(lambda: not first.leading)
            await world.until(lambda: first.leading or second.leading)
            await world.say("n1", SICK)
            await world.marked("n1", MarkState.PENDING)


async def test_a_leader_that_stops_gives_its_lease_back_at_once(world):
    slow = replace(QUICK, lease_duration=timedelta(hours=1))
    async with world.watching(settings=slow) as first:
        await world.until(lambda: first.leading)
    async with world.watching(settings=slow) as second:
        await world.until(lambda: second.leading)


async def test_a_leader_that_cannot_renew_steps_down(world):
    async with world.watching() as watcher:
        await world.until(lambda: watcher.leading)
        order = world.server.faults.order(
            Fault(path="/leases/watcher", times=10_000, code=503, reason="ServiceUnavailable")
        )
        await world.until(lambda: not watcher.leading)
        order.times = 0
        await world.until(lambda: watcher.leading)


async def test_two_leaders_at_once_do_no_harm(world):
    """Both believe that they lead: neither looks at the Lease at all."""
    for number in range(20):
        await world.add_node(f"n{number}", SICK)
    terms = [asyncio.create_task(world.watcher()._lead()) for _ in range(2)]
    await world.until(lambda: len({name for name, *_ in world.engine.heard("start")}) == 20)
    for term in terms:
        term.cancel()
    await asyncio.gather(*terms, return_exceptions=True)
    names = [each["objectRef"]["name"] for each in world.patches()]
    assert sorted(names) == sorted(set(names))
    ids = {(name, opening.mark.id) for name, opening, _ in world.engine.heard("start")}
    assert len(ids) == 20


class Killed(BaseException):
    """The process is gone; nothing after it runs."""


class Mortal:
    """A port that dies before or after its n-th call, and stays dead."""

    def __init__(self, port, life):
        self._port = port
        self._life = life

    def __getattr__(self, name):
        method = getattr(self._port, name)

        async def call(*arguments, **named):
            self._life.begin()
            answer = await method(*arguments, **named)
            self._life.end()
            return answer

        return method if name == "watch" else call


class Life:
    def __init__(self, calls, after):
        self.left, self.after, self.dead = calls, after, False

    def begin(self):
        self._die_if(self.dead)
        self.left -= 1
        self._die_if(self.left == 0 and not self.after)

    def end(self):
        self._die_if(self.dead or (self.left <= 0 and self.after))

    def _die_if(self, now):
        if now:
            self.dead = True
            raise Killed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("calls", range(1, 10))
async def test_killed_at_any_call_nothing_is_lost_and_nothing_done_twice(world, calls, after):
    await world.add_node("n1", SICK)
    life = Life(calls, after)
    doomed = world.watcher(Mortal(world.api, life), Mortal(world.engine, life))
    task = asyncio.create_task(doomed.run())
    await world.until(lambda: life.dead or len(world.engine.heard("is-open")) > 20)
    task.cancel()
    with suppress(Killed, asyncio.CancelledError, BaseExceptionGroup):
        await task
    await world.patch_lease(holderIdentity="")
    async with world.watching() as watcher:
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
        await world.swept(watcher, 1)
    assert len(world.patches()) == 1
    assert {opening.mark.id for _, opening, _ in world.engine.heard("start")} == {node.mark.id}
