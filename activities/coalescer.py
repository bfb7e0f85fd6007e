"""Many asks of one process in few updates: at most one in flight, whatever comes meanwhile rides
in the next.

A workflow takes ten updates at a time; beyond that its goodput falls twentyfold. This keeps each
process at one, and a storm of ten thousand asks at some dozens of updates.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from policies.exchange import Answer, Batch
from policies.ledger import Ask

MOST_IN_A_BATCH = 1_000
"""Asks and give-backs in one update: some 450 KB."""
MOST_CHARACTERS = 500_000
"""In the names of one batch's asks: a payload may have two megabytes, and scopes can be long."""
WITHDRAWN = "withdrawn before it was sent"

Future = asyncio.Future[str]


@dataclass(slots=True)
class _Pending:
    """What is to be sent for one incident, and who waits for it."""

    ask: Ask | None
    futures: list[Future] = field(default_factory=list)

    @property
    def awaited(self) -> bool:
        return not all(each.done() for each in self.futures)


_Queue = dict[str, _Pending]


class Coalescer:
    """Sends batches of at most `most` by `send`, one at a time."""

    def __init__(
        self, send: Callable[[Batch], Awaitable[Answer]], most: int = MOST_IN_A_BATCH
    ) -> None:
        self._send = send
        self._most = most
        self._asks: _Queue = {}
        self._gives: _Queue = {}
        self._hand_offs: _Queue = {}
        self._sender: asyncio.Task[None] | None = None

    async def ask(self, ask: Ask) -> str:
        """Return "" when the lease is granted, else what stops it. Raises what `send` raises."""
        return await self._sent(self._asks, ask.incident, ask)

    async def give(self, incident: str) -> None:
        """Return when the budget has taken the lease, or the ask, back."""
        self._withdraw(incident)
        await self._sent(self._gives, incident, None)

    async def hand_off(self, ask: Ask) -> None:
        """Return when the budget has taken the lease back and knows that people have the node."""
        self._withdraw(ask.incident)
        await self._sent(self._hand_offs, ask.incident, ask)

    def _withdraw(self, incident: str) -> None:
        """An ask that was not sent yet must not be sent after what takes it back."""
        pending = self._asks.pop(incident, None)
        if pending:
            _resolve(pending, WITHDRAWN)

    async def _sent(self, queue: _Queue, incident: str, ask: Ask | None) -> str:
        future: Future = asyncio.get_running_loop().create_future()
        pending = queue.setdefault(incident, _Pending(ask))
        pending.ask = ask
        pending.futures.append(future)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._asks or self._gives or self._hand_offs:
            gives = _taken(self._gives, self._most)
            hand_offs = _taken(self._hand_offs, self._most - len(gives))
            asks = _taken(self._asks, self._most - len(gives) - len(hand_offs))
            asks = {name: each for name, each in asks.items() if each.awaited}
            if gives or hand_offs or asks:
                await self._exchange(asks, gives, hand_offs)

    async def _exchange(self, asks: _Queue, gives: _Queue, hand_offs: _Queue) -> None:
        batch = Batch(_asks_of(asks), tuple(gives), _asks_of(hand_offs))
        sending = asyncio.ensure_future(self._send(batch))
        await asyncio.wait([sending])
        problem = sending.exception()
        for queue in (asks, gives, hand_offs):
            for incident, pending in queue.items():
                if problem:
                    _fail(pending, problem)
                else:
                    why = sending.result().why if queue is asks else {}
                    _resolve(pending, why.get(incident, ""))


def _taken(queue: _Queue, most: int) -> _Queue:
    """The first of a queue, as many as fit; one always does."""
    taken: _Queue = {}
    left = MOST_CHARACTERS
    for name in list(queue)[:most]:
        left -= _characters(queue[name].ask)
        if taken and left < 0:
            break
        taken[name] = queue.pop(name)
    return taken


def _characters(ask: Ask | None) -> int:
    if ask is None:
        return 0
    scopes = (*(each.scope for each in ask.claims), *ask.within)
    return len(ask.incident) + len(ask.node) + sum(map(len, scopes))


def _asks_of(queue: _Queue) -> tuple[Ask, ...]:
    return tuple(each.ask for each in queue.values() if each.ask)


def _resolve(pending: _Pending, value: str) -> None:
    for future in pending.futures:
        if not future.done():
            future.set_result(value)


def _fail(pending: _Pending, problem: BaseException) -> None:
    for future in pending.futures:
        if not future.done():
            future.set_exception(problem)
