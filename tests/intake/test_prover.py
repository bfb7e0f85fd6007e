"""Who carries the taint is proven: asked for once, in its turn, and by whoever leads."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import random
from typing import Any, cast

import pytest

from fleet.errors import Transient
from fleet.mark import MarkState
from fleet.names import HOLD_EFFECT, UNPROVEN_TAINT
from fleet.proof import Why
from intake.journal import Journal
from intake.prover import Asked, Prover, due_again
from intake.settings import Settings
from intake.surroundings import Surroundings
from tests.intake.cases import NOW, PlainRules
from tests.intake.world import SICK
from tests.proving.nodes import a_node, taint

NEW = {"key": UNPROVEN_TAINT, "value": "", "effect": HOLD_EFFECT}
SWEPT = {**NEW, "value": "sweep"}
ABOUT = ("uid", "boot", "")
SETTINGS = Settings()


class Proofs:
    """Takes notes; `away` makes every call fail."""

    def __init__(self):
        self.tasks = []
        self.away = False
        self.calls = 0

    async def prove(self, task):
        self.calls += 1
        if self.away:
            raise Transient("connection refused")
        self.tasks.append(task)

    def names(self):
        return [each.node.name for each in self.tasks]


@pytest.fixture
def proofs():
    return Proofs()


async def test_a_node_with_the_taint_is_asked_for_once_and_one_without_never(world, proofs):
    await world.add_node("new", taints=[NEW], ready="True")
    await world.add_node("swept", taints=[SWEPT], ready="True")
    await world.add_node("serving", ready="True")
    async with world.watching(proofs=proofs) as watcher:
        await world.until(lambda: len(proofs.tasks) == 2)
        await world.swept(watcher)
    assert {each.node.name: each.why for each in proofs.tasks} == {
        "new": Why.JOINED,
        "swept": Why.SWEEP,
    }
    assert {each.boot_id for each in proofs.tasks} == {"b1"}
    assert not world.patches()


async def test_the_ladder_comes_first_and_when_its_mark_is_off_the_proof_follows(world, proofs):
    await world.add_node("n1", SICK, taints=[NEW], ready="True")
    async with world.watching(proofs=proofs) as watcher:
        node = await world.marked("n1", MarkState.PENDING)
        await world.swept(watcher)
        assert proofs.tasks == []
        await world.say("n1", ready="True")
        watched = replace(node.mark, state=MarkState.PROBATION)
        await world.change("n1", mark=watched, taints=[NEW])
        await world.swept(watcher)
        assert proofs.tasks == []
        await world.change("n1", mark=None)
        await world.until(lambda: proofs.tasks)
    assert proofs.names() == ["n1"]


@pytest.mark.parametrize(
    "about",
    [
        {"labels": {"gpumend.io/managed": "false"}},
        {"unschedulable": True},
        {"ready": "False"},
    ],
)
async def test_who_is_not_to_be_touched_or_cannot_be_proven_is_left_alone(world, proofs, about):
    about.setdefault("ready", "True")
    await world.add_node("n1", taints=[NEW], **about)
    await world.add_node("n2", taints=[NEW], ready="True")
    async with world.watching(proofs=proofs) as watcher:
        await world.until(lambda: proofs.tasks)
        await world.swept(watcher)
    assert proofs.names() == ["n2"]


async def test_another_boot_is_asked_for_at_once_and_another_leader_asks_again(world, proofs):
    await world.add_node("n1", taints=[NEW], ready="True")
    async with world.watching(proofs=proofs):
        await world.until(lambda: len(proofs.tasks) == 1)
        await world.say("n1", boot_id="b2", ready="True")
        await world.until(lambda: len(proofs.tasks) == 2)
    async with world.watching(proofs=proofs):
        await world.until(lambda: len(proofs.tasks) == 3)
    assert [each.boot_id for each in proofs.tasks] == ["b1", "b2", "b2"]


async def test_while_temporal_is_away_it_is_asked_again(world, proofs):
    await world.add_node("n1", taints=[NEW], ready="True")
    proofs.away = True
    async with world.watching(proofs=proofs) as watcher:
        await world.until(lambda: proofs.calls > 2)
        assert watcher.term.prover.counts.failures > 1
        proofs.away = False
        await world.until(lambda: proofs.tasks)


async def test_in_dry_run_and_without_the_port_nobody_is_asked(world, proofs):
    await world.add_node("n1", taints=[NEW], ready="True")
    async with world.watching(proofs=proofs, rules=PlainRules(proves=False)) as watcher:
        await world.swept(watcher)
    assert proofs.calls == 0
    async with world.watching() as watcher:
        await world.swept(watcher)
    assert proofs.calls == 0


async def test_what_a_dead_sweep_left_is_asked_for_whatever_speaks_against_a_proof(world, proofs):
    """The run that follows proves nothing, and takes the taint off."""
    about: list[dict[str, Any]] = [
        {"labels": {"gpumend.io/managed": "false"}},
        {"unschedulable": True},
        {},
    ]
    for number, more in enumerate(about):
        await world.add_node(f"n{number}", taints=[SWEPT], **{"ready": "True", **more})
    async with world.watching(proofs=proofs, rules=PlainRules(proves=False)) as watcher:
        await world.until(lambda: len(proofs.tasks) == len(about))
        await world.swept(watcher)
    assert sorted(proofs.names()) == ["n0", "n1", "n2"]
    assert {each.why for each in proofs.tasks} == {Why.SWEEP}


@pytest.mark.parametrize(
    ("times", "minutes", "again"),
    [(1, 14, False), (1, 15, True), (2, 29, False), (2, 30, True), (3, 60, True), (99, 360, True)],
)
def test_it_is_asked_for_more_and_more_seldom_up_to_a_limit(times, minutes, again):
    asked = Asked(ABOUT, NOW, times)
    assert due_again(asked, ABOUT, NOW + timedelta(minutes=minutes), SETTINGS) is again


@pytest.mark.parametrize("about", [("u2", "boot", ""), ("uid", "b2", ""), ("uid", "boot", "found")])
def test_another_node_boot_or_reason_is_asked_for_at_once(about):
    assert due_again(Asked(ABOUT, NOW, 9), about, NOW, SETTINGS)


class Still:
    """A clock that stands."""

    def now(self):
        return NOW


class Heard(Proofs):
    """Tells, one after the other, who was asked for."""

    def __init__(self):
        super().__init__()
        self.who: asyncio.Queue[str] = asyncio.Queue()

    async def prove(self, task):
        await super().prove(task)
        self.who.put_nowait(task.node.name)


async def test_who_is_held_comes_first_and_a_node_whose_record_is_old_is_left_alone():
    proofs = Heard()
    nobody = cast(Any, None)
    given = Surroundings(
        *(nobody, nobody, PlainRules(), "c", (), SETTINGS, cast(Any, Still()), random, Journal()),
        proofs=proofs,
    )
    placed, busy = asyncio.Event(), {"a"}
    prover = Prover(given, placed, busy.__contains__)
    running = asyncio.create_task(prover.run())
    for name in "ab":
        prover.look(a_node(name, taints=[taint()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert proofs.calls == 0, "holds are still to be placed"
    placed.set()
    async with asyncio.timeout(20):
        assert await proofs.who.get() == "b", "our own write to the other is not seen yet"
        busy.clear()
        prover.look(a_node("a", taints=[taint()]))
        assert await proofs.who.get() == "a"
    running.cancel()
