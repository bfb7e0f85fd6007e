"""Waiting for a server that is away when a process starts: said each time, with growing pauses."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from fleet.errors import Transient

T = TypeVar("T")
_log = logging.getLogger("gpumend.worker")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
"""Seconds between tries."""
ONE_TRY = timedelta(seconds=30)
"""An address that swallows packets would hold a connect for minutes."""
WAIT_LIMIT = timedelta(hours=1)
"""After this the process ends, for its supervisor to tell people."""


async def reach(
    what: str, call: Callable[[], Awaitable[T]], limit: timedelta | None = WAIT_LIMIT
) -> T:
    """Call until it answers. Raises `Transient` after the limit; None waits until cancelled."""
    pause, began = FIRST_PAUSE, time.monotonic()
    while True:
        try:
            return await _try(what, call)
        except Transient as problem:
            if limit is not None and time.monotonic() - began >= limit.total_seconds():
                raise
            _log.warning("what=waiting for=%s pause=%.1fs why=%r", what, pause, str(problem))
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)


async def _try(what: str, call: Callable[[], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(ONE_TRY.total_seconds()):
            return await call()
    except TimeoutError as problem:
        raise Transient(f"{what} did not answer in {ONE_TRY}") from problem
