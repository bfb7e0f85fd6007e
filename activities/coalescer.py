"""Many asks of one process in few updates: at most one in flight, whatever comes meanwhile rides
in the next.

A workflow takes ten updates at a time; beyond that its goodput falls twentyfold. This keeps each
process at one, and a storm of ten thousand asks at some dozens of updates.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain

from policies.budget import Ask
from policies.exchange import Answer, Batch

MOST_IN_A_BATCH = 250
"""Asks and give-backs in one update: some 100 KB."""


class Coalescer:
    """Sends batches by `send`, one at a time."""

    def __init__(self, send: Callable[[Batch], Awaitable[Answer]]) -> None:
        self._send = send
        self._asks: dict[str, tuple[Ask, list[asyncio.Future[str]]]] = {}
        self._gives: dict[str, list[asyncio.Future[str]]] = {}
        self._sender: asyncio.Task[None] | None = None

    async def ask(self, ask: Ask) -> str:
        """Return "" when the lease is granted, else what stops it. Raises what `send` raises."""
        future = asyncio.get_running_loop().create_future()
        _, waiting = self._asks.get(ask.incident, (ask, []))
        self._asks[ask.incident] = (ask, [*waiting, future])
        return await self._sent(future)

    async def give(self, incident: str) -> None:
        """Return when the budget has taken the lease, or the ask, back."""
        future = asyncio.get_running_loop().create_future()
        self._gives.setdefault(incident, []).append(future)
        await self._sent(future)

    async def _sent(self, future: "asyncio.Future[str]") -> str:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._asks or self._gives:
            gives = {each: self._gives.pop(each) for each in list(self._gives)[:MOST_IN_A_BATCH]}
            room = MOST_IN_A_BATCH - len(gives)
            asks = {each: self._asks.pop(each) for each in list(self._asks)[:room]}
            batch = Batch(tuple(ask for ask, _ in asks.values()), tuple(gives))
            waiting = {each: futures for each, (_, futures) in asks.items()}
            await self._exchange(batch, waiting, gives)

    async def _exchange(
        self,
        batch: Batch,
        asks: dict[str, list["asyncio.Future[str]"]],
        gives: dict[str, list["asyncio.Future[str]"]],
    ) -> None:
        sending = asyncio.ensure_future(self._send(batch))
        await asyncio.wait([sending])
        problem = sending.exception()
        if problem:
            for future in chain(*asks.values(), *gives.values()):
                if not future.done():
                    future.set_exception(problem)
            return
        answer = sending.result()
        for incident, futures in asks.items():
            _resolve(futures, answer.why.get(incident, ""))
        for futures in gives.values():
            _resolve(futures, "")


def _resolve(futures: list["asyncio.Future[str]"], value: str) -> None:
    for future in futures:
        if not future.done():
            future.set_result(value)
