import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from activities.coalescer import MOST_IN_A_BATCH, Coalescer
from fleet.errors import Transient
from policies.exchange import Answer, Batch
from policies.ledger import Ask, Claim

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def ask(incident: str) -> Ask:
    return Ask(incident, incident, (Claim("cluster", 1),), NOW)


class Budget:
    """Grants everything, one batch at a time, when let."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.let = asyncio.Event()
        self.inside = 0

    async def exchange(self, batch: Batch) -> Answer:
        self.inside += 1
        assert self.inside == 1, "at most one update is in flight"
        self.batches.append(batch)
        await self.let.wait()
        self.inside -= 1
        return Answer(tuple(each.incident for each in batch.asks), {})


async def test_what_comes_while_one_is_in_flight_rides_in_the_next():
    budget = Budget()
    coalescer = Coalescer(budget.exchange)
    async with asyncio.TaskGroup() as group:
        group.create_task(coalescer.ask(ask("first")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(2 * MOST_IN_A_BATCH):
            group.create_task(coalescer.ask(ask(f"n{number}")))
        group.create_task(coalescer.give("old"))
        await asyncio.sleep(0)
        budget.let.set()
    sizes = [len(each.asks) + len(each.gives) for each in budget.batches]
    assert sizes == [1, MOST_IN_A_BATCH, MOST_IN_A_BATCH, 1]


async def test_what_stops_an_ask_is_said_to_who_asked():
    async def exchange(batch: Batch) -> Answer:
        return Answer((), {each.incident: "rack/r1 lends 1 at once" for each in batch.asks})

    assert await Coalescer(exchange).ask(ask("a")) == "rack/r1 lends 1 at once"


async def test_a_failure_reaches_everybody_in_the_batch_and_the_next_batch_is_sent():
    failures = [Transient("away")]

    async def exchange(batch: Batch) -> Answer:
        if failures:
            raise failures.pop()
        return Answer(("b",), {})

    coalescer = Coalescer(exchange)
    both = await asyncio.gather(
        coalescer.ask(ask("a")), coalescer.give("c"), return_exceptions=True
    )
    assert all(isinstance(each, Transient) for each in both)
    assert await coalescer.ask(ask("b")) == ""


async def test_a_cancelled_ask_stops_nobody_else():
    budget = Budget()
    coalescer = Coalescer(budget.exchange)
    left = asyncio.create_task(coalescer.ask(ask("a")))
    stays = asyncio.create_task(coalescer.ask(ask("b")))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    budget.let.set()
    assert await stays == ""


async def test_long_scopes_make_smaller_batches_and_one_ask_always_goes():
    budget = Budget()
    budget.let.set()
    coalescer = Coalescer(budget.exchange)
    long = tuple(Claim(f"label:{'x' * 200_000}/{n}", 1) for n in range(3))
    asks = [replace(ask(name), claims=long) for name in "ab"]
    small = [ask(f"n{n}") for n in range(10)]
    await asyncio.gather(*(coalescer.ask(each) for each in (*asks, *small)))
    assert [len(each.asks) for each in budget.batches] == [1, 1, len(small)]
