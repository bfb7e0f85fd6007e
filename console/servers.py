"""The two servers as a command meets them: one try each, and who is away is said, not waited for.

A command that can do something without one of them goes on and says what it could not know.
"""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from activities.adapters import kubernetes as kubernetes_adapter
from activities.adapters.kubernetes_access import NotConfigured
from activities.adapters.temporal_connection import connect
from activities.adapters.temporal_reading import TemporalReading
from console import exits
from fleet.errors import Ambiguous, NotFound, Refused, Transient
from fleet.ports import Kubernetes

T = TypeVar("T")

ONE_TRY = timedelta(seconds=10)
"""Longer than any healthy answer takes; a person waits for it."""


@dataclass(frozen=True, slots=True)
class Away:
    """A server that did not answer, and what it said instead."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} is away: {self.why}"


def default_cluster() -> str:
    """The cluster that a command means where it is not told, as the worker has it."""
    return os.environ.get("GPUMEND_CLUSTER") or "default"


async def temporal() -> TemporalReading | Away:
    """Temporal, configured as its CLI."""
    return await once("Temporal", lambda: _reading())


async def need_temporal() -> TemporalReading:
    """Temporal, or `Transient`."""
    found = await temporal()
    if isinstance(found, Away):
        raise Transient(str(found))
    return found


@asynccontextmanager
async def kubernetes() -> AsyncIterator[Kubernetes | Away]:
    """The API server, configured as kubectl; nothing is sent yet."""
    try:
        connection = kubernetes_adapter.connect()
        async with connection as api:
            yield api
    except NotConfigured as problem:
        yield Away("Kubernetes", str(problem))


async def once(what: str, call: Callable[[], Awaitable[T]], limit: timedelta = ONE_TRY) -> T | Away:
    """One try of a read; `Refused` (a no, which is an answer) goes through."""
    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await call()
    except Transient as problem:
        return Away(what, str(problem))
    except TimeoutError:
        return Away(what, f"no answer in {limit.seconds} s")


def run(command: str, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command's coroutine; what the servers say becomes a line and an exit status."""
    try:
        return asyncio.run(_collected(main))
    except (Transient, Ambiguous) as problem:
        return _said(command, problem, exits.UNREACHABLE)
    except NotConfigured as problem:
        return _said(command, problem, exits.UNREACHABLE)
    except NotFound as problem:
        return _said(command, problem.message, exits.USAGE)
    except Refused as problem:
        return _said(command, problem.message, exits.FOUND)
    except KeyboardInterrupt:
        return exits.FOUND


async def _collected(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """A Temporal client that outlives its loop may abort the process at exit."""
    try:
        return await main()
    finally:
        gc.collect()


async def _reading() -> TemporalReading:
    return TemporalReading(await connect())


def _said(command: str, problem: object, status: int) -> int:
    print(f"gpumend {command}: {problem}", file=sys.stderr)
    return status
