"""Starts the engine's worker with another port to Kubernetes than the bare adapter.

The engine has no switch for that: its composition root takes a port, and this passes one in.
"""

import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from activities.adapters import kubernetes as adapter
from fleet.ports import Kubernetes


def run_worker(around: Callable[[Kubernetes], Kubernetes], arguments: Sequence[str]) -> int:
    """Run the worker with the port that `around` makes of the honest one; its exit status."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Kubernetes]:
        async with adapter.connect() as kubernetes:
            yield around(kubernetes)

    root = importlib.import_module("worker")
    status: int = root.main(arguments, connect)
    return status
