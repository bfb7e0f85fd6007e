"""How often people are told: single messages while there are few, digests while there are many.

The rule: a message costs a turn; there are MOST_AT_ONCE turns, and one comes back every
TURN_SECONDS. Whoever waits for a turn with more than SINGLES others goes out with them in one
digest. So 500 questions are some ten messages, and a process never sends more than
MOST_AT_ONCE + 60 / TURN_SECONDS in a minute. What was delivered is the caller's to remember beyond
this process: here only that the same key is not sent twice.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from activities.notice import Notice, body_of, digest_of

MOST_AT_ONCE = 6
TURN_SECONDS = 10.0
SINGLES = 3
REMEMBERED = 10_000
"""Keys of what this process has sent."""

Post = Callable[[dict[str, Any]], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]

_log = logging.getLogger(__name__)


class Notifier:
    """Sends notices through `post`, which raises what `fleet.errors` has."""

    def __init__(
        self, post: Post, now: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._post = post
        self._now = now
        self._sleep = sleep
        self._turns = float(MOST_AT_ONCE)
        self._counted_at = now()
        self._waiting: OrderedDict[str, tuple[Notice, asyncio.Future[None]]] = OrderedDict()
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._sending: asyncio.Task[None] | None = None
        self.delivered = 0
        """Messages, a digest being one."""
        self.failed = 0

    async def notify(self, notice: Notice) -> None:
        """Return when it was delivered, alone or in a digest; raise what the receiver said."""
        if notice.key in self._sent:
            return
        if notice.key not in self._waiting:
            self._waiting[notice.key] = notice, asyncio.get_running_loop().create_future()
        _, delivered = self._waiting[notice.key]
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        await asyncio.shield(delivered)

    async def _send_all(self) -> None:
        while self._waiting:
            await self._take_turn()
            many = len(self._waiting) > SINGLES
            keys = list(self._waiting) if many else list(self._waiting)[:1]
            await self._send([self._waiting.pop(key) for key in keys])

    async def _send(self, batch: list[tuple[Notice, "asyncio.Future[None]"]]) -> None:
        notices = [notice for notice, _ in batch]
        try:
            await self._post(body_of(notices[0]) if len(batch) == 1 else digest_of(notices))
        except Exception as problem:  # noqa: BLE001  (each caller is told, and decides)
            self.failed += 1
            _log.warning("what=not-notified notices=%d why=%r", len(batch), str(problem))
            for _, delivered in batch:
                delivered.set_exception(problem)
                delivered.exception()  # seen: a caller that was stopped meanwhile asks no more
            return
        self.delivered += 1
        for notice, delivered in batch:
            self._sent[notice.key] = None
            delivered.set_result(None)
        while len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    async def _take_turn(self) -> None:
        while True:
            now = self._now()
            back = (now - self._counted_at) / TURN_SECONDS
            self._turns, self._counted_at = min(float(MOST_AT_ONCE), self._turns + back), now
            if self._turns >= 1:
                self._turns -= 1
                return
            await self._sleep((1 - self._turns) * TURN_SECONDS)
