"""The order in which nodes have their turn."""

import asyncio

import pytest

from intake.backoff import Backoff
from intake.work_queue import WorkQueue
from tests.intake.cases import NOW


async def drained(queue, perform):
    task = asyncio.create_task(queue.run(perform))
    async with asyncio.timeout(5):
        await queue.idle.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_worst_comes_first_and_each_key_once():
    queue, order = WorkQueue(1), []
    for key, urgency in (("c", 2), ("a", 1), ("b", 0), ("c", 2), ("a", 3)):
        queue.put(key, (urgency, NOW, key))

    async def perform(key, rank):
        order.append(key)

    await drained(queue, perform)
    assert order == ["b", "a", "c"]


async def test_a_key_that_becomes_worse_moves_forward():
    queue, order = WorkQueue(1), []
    queue.put("a", (5, NOW, "a"))
    queue.put("b", (3, NOW, "b"))
    queue.put("a", (1, NOW, "a"))

    async def perform(key, rank):
        order.append((key, rank[0]))

    await drained(queue, perform)
    assert order == [("a", 1), ("b", 3)]


async def test_a_key_is_never_worked_on_twice_at_once_and_what_came_meanwhile_is_not_lost():
    queue, now, most, done = WorkQueue(4), 0, 0, 0

    async def perform(key, rank):
        nonlocal now, most, done
        now += 1
        most = max(most, now)
        if done < 3:
            queue.put(key, rank)
        await asyncio.sleep(0)
        now, done = now - 1, done + 1

    queue.put("a", (0, NOW, "a"))
    await drained(queue, perform)
    assert (most, done) == (1, 4)


async def test_no_more_are_worked_on_at_once_than_allowed():
    queue, now, most = WorkQueue(3), 0, 0

    async def perform(key, rank):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    for number in range(20):
        queue.put(str(number), (0, NOW, str(number)))
    assert len(queue) == 20
    await drained(queue, perform)
    assert most == 3


async def test_an_error_is_not_swallowed():
    queue = WorkQueue(2)
    queue.put("a", (0, NOW, "a"))

    async def perform(key, rank):
        raise RuntimeError(key)

    with pytest.raises(ExceptionGroup):
        await queue.run(perform)


def test_waits_double_up_to_a_limit_are_jittered_and_start_over():
    backoff = Backoff(1, 10, lambda: 1.0)
    assert [backoff.next() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    backoff.reset()
    assert backoff.next() == 1
    assert Backoff(1, 10, lambda: 0.0).next() == 0.5


def test_a_hint_of_the_server_raises_a_wait_but_not_above_the_limit():
    assert Backoff(1, 10, lambda: 1.0).next(5) == 5
    assert Backoff(1, 10, lambda: 1.0).next(500) == 10
