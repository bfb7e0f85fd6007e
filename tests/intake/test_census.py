"""The budget is told how the fleet stands: by what it hears of a whole watcher."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import random
from typing import Any, cast

from fleet.census import ScopeCensus
from fleet.errors import Transient
from fleet.mark import MarkState
from intake.census import CensusTaker
from intake.clock import SystemClock
from intake.journal import Journal
from intake.settings import Settings
from intake.surroundings import Surroundings
from intake.tally import Stance, Tally
from tests.intake.cases import PlainRules
from tests.intake.world import QUICK, SICK

OFTEN = replace(
    QUICK,
    census_at_most_every=timedelta(seconds=0.02),
    census_at_least_every=timedelta(seconds=0.04),
)
ON_CHANGE = replace(OFTEN, census_at_least_every=timedelta(hours=1))


class Budget:
    """Takes notes; while away every push fails."""

    def __init__(self):
        self.told = []
        self.away = False
        self.calls = 0

    async def census(self, census):
        self.calls += 1
        if self.away:
            raise Transient("connection refused")
        self.told.append(census)

    def cluster(self):
        return self.told[-1].scopes.get("cluster/c") if self.told else None


async def test_the_budget_hears_of_size_holds_and_nodes_that_are_down_when_they_change(world):
    budget = Budget()
    await world.add_node("n1", ready="True")
    await world.add_node("n2", ready="False")
    async with world.watching(budgets=budget, settings=ON_CHANGE):
        await world.until(lambda: budget.cluster() == ScopeCensus(2, 0, ("n2",)))
        await world.say("n1", SICK, ready="True")
        await world.until(lambda: budget.cluster() == ScopeCensus(2, 1, ("n2",)))
        await world.delete("n2")
        await world.until(lambda: budget.cluster() == ScopeCensus(1, 1, ()))
    instants = [each.at for each in budget.told]
    assert instants == sorted(instants)


async def test_between_two_censuses_is_a_rest_however_much_changes():
    seen, tally, enough = [], Tally(), asyncio.Event()

    class Noted(SystemClock):
        async def sleep(self, seconds):
            seen.append(seconds)
            await asyncio.sleep(0)

    class Changing:
        async def census(self, census):
            seen.append("told")
            tally.put("n1", Stance((), down=len(seen) % 4 == 1))
            taker.look()
            if len(seen) > 6:
                enough.set()

    nobody = cast(Any, None)  # neither nodes nor incidents have a part in this
    given = Surroundings(
        nobody, nobody, PlainRules(), "c", (), Settings(), Noted(), random, Journal(), Changing()
    )
    taker = CensusTaker(given, tally, dict)
    task = asyncio.create_task(taker.run())
    await enough.wait()
    task.cancel()
    assert seen[:6] == ["told", 10.0] * 3


async def test_where_nothing_changes_the_budget_is_told_again_before_a_census_is_old(world):
    budget = Budget()
    await world.add_node("n1")
    async with world.watching(budgets=budget, settings=OFTEN):
        await world.until(lambda: len(budget.told) >= 3)
    assert len({str(each.scopes) for each in budget.told}) == 1


async def test_a_budget_that_is_away_is_said_once_and_told_again_and_holds_up_no_hold(
    world, caplog
):
    budget = Budget()
    budget.away = True
    async with world.watching(budgets=budget, settings=ON_CHANGE):
        await world.until(lambda: budget.calls >= 2)
        await world.add_node("n1", SICK)
        await world.marked("n1", MarkState.PENDING)
        budget.away = False
        await world.until(lambda: budget.cluster() == ScopeCensus(1, 1, ("n1",)))
    assert caplog.text.count("did=cannot-tell-census") == 1
