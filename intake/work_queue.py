"""A queue that takes the worst first, one at a time for each key, a bounded number at once.

Bounded by its keys: a key that waits is not put twice. What is done for a key is found out when
its turn comes, never remembered from when it was put.
"""

import asyncio
from collections.abc import Awaitable, Callable

from intake.admission import Rank

Perform = Callable[[str, Rank], Awaitable[None]]


class WorkQueue:
    """`idle` is set while nothing waits and nothing is being done."""

    def __init__(self, workers: int) -> None:
        self.idle = asyncio.Event()
        self.idle.set()
        self._workers = workers
        self._order: asyncio.PriorityQueue[tuple[Rank, str]] = asyncio.PriorityQueue()
        self._waiting: dict[str, Rank] = {}
        self._busy: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def put(self, key: str, rank: Rank) -> None:
        """Ask for work on a key; lower ranks come first, and of two asked for the lower counts."""
        waiting = self._waiting.get(key)
        if waiting is not None and waiting <= rank:
            return
        self._waiting[key] = rank
        self.idle.clear()
        if key not in self._busy:
            self._order.put_nowait((rank, key))

    async def run(self, perform: Perform) -> None:
        """Work until cancelled; an error of `perform` ends it."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work(perform))

    async def _work(self, perform: Perform) -> None:
        while True:
            rank, key = await self._order.get()
            if key in self._busy or self._waiting.get(key) != rank:
                continue  # put again since, with another rank, or taken by another worker
            del self._waiting[key]
            self._busy.add(key)
            try:
                await perform(key, rank)
            finally:
                self._done(key)

    def _done(self, key: str) -> None:
        self._busy.discard(key)
        if key in self._waiting:
            self._order.put_nowait((self._waiting[key], key))
        elif not self._waiting and not self._busy:
            self.idle.set()
