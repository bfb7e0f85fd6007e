"""A storm of asks before a Temporal dev server: two processes, one budget, everybody at once.

The floor is the same batches by the same processes into a workflow that does nothing with them.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from activities.adapters.temporal_budget import TemporalBudget
from activities.search_attributes import CLUSTER
from console.bench.budget_asker import FLOOR, NODES_A_RACK
from console.bench.budget_history import Judge
from fleet import names
from fleet.census import Census, ScopeCensus
from simulator.loopback import free_port

PROCESSES = 2
LIMIT = 180.0
"""Seconds after which a storm is given up."""
PAUSE = 0.2
DOWN_EVERY = 50
"""Racks with a node that is down for a reason of others."""


@dataclass(frozen=True, slots=True)
class Storm:
    """How one storm went; seconds are until each ask was answered."""

    seconds: float
    floor_seconds: float
    granted: int
    judge: Judge


async def storm(asks: int, *, new_run_every: int = 0) -> Storm:
    """Ask at once; with `new_run_every` the budget goes on as a new run after so many events."""
    options = ["--dynamic-config-value", f"limit.historyCount.suggestContinueAsNew={new_run_every}"]
    cluster = "bench"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_server(options if new_run_every else []))
        share = asks // PROCESSES
        processes = [
            await stack.enter_async_context(_process(client, cluster, each * share, share))
            for each in range(PROCESSES)
        ]
        await client.start_workflow(
            FLOOR, id=f"{FLOOR}/{cluster}", task_queue=names.BUDGET_TASK_QUEUE
        )
        await TemporalBudget(lambda: client, cluster).census(_census(asks, cluster))
        floor = await _together(processes, "floor")
        asked = await _together(processes, "ask")
        await _together(processes, "give")
        judge = await Judge().read(client, names.budget_workflow_id(cluster))
    return Storm(_seconds(asked), _seconds(floor), sum(each["count"] for each in asked), judge)


def _census(asks: int, cluster: str) -> Census:
    """Every rack, and in some of them a node that is down and not ours."""
    racks = range(asks // NODES_A_RACK)
    down = {each: (f"down-{each}",) if each % DOWN_EVERY == 0 else () for each in racks}
    scopes = {f"rack/rack-{each}": ScopeCensus(NODES_A_RACK, 0, down[each]) for each in racks}
    every = tuple(name for names in down.values() for name in names)
    scopes[f"cluster/{cluster}"] = ScopeCensus(asks, 0, every)
    return Census(datetime.now(UTC), scopes)


@asynccontextmanager
async def _server(options: Sequence[str]) -> AsyncIterator[Client]:
    """A dev server in memory. Its output is dropped: stdout is for the figures."""
    port = free_port()
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{_path()}")
    if program is None:
        raise RuntimeError("there is no `temporal` program: install the extra `demo`")
    process = await asyncio.create_subprocess_exec(
        *(program, "server", "start-dev", "--headless", "--port", str(port)),
        *("--log-level", "never", "--search-attribute", f"{CLUSTER.name}=Keyword", *options),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield await _connected(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        await process.wait()


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


async def _connected(address: str) -> Client:
    async with asyncio.timeout(LIMIT):
        while True:
            with suppress(RuntimeError, RPCError):
                client = await Client.connect(address, data_converter=pydantic_data_converter)
                if CLUSTER.name in await _registered(client):
                    return client
            await asyncio.sleep(PAUSE)


async def _registered(client: Client) -> Collection[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    found = await client.operator_service.list_search_attributes(request)
    return found.custom_attributes


@asynccontextmanager
async def _process(
    client: Client, cluster: str, first: int, count: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    address = client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "console.bench.budget_asker"),
        *(address, cluster, str(first), str(count)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    try:
        async with asyncio.timeout(LIMIT):
            ready = await process.stdout.readline()
        if ready.strip() != b"ready":
            raise RuntimeError("a process of the storm did not start; it said why on stderr")
        yield process
        process.stdin.close()
        async with asyncio.timeout(LIMIT):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _together(
    processes: Sequence[asyncio.subprocess.Process], command: str
) -> list[dict[str, Any]]:
    for each in processes:
        assert each.stdin
        each.stdin.write(f"{command}\n".encode())
    async with asyncio.timeout(LIMIT):
        return [json.loads(await each.stdout.readline()) for each in processes if each.stdout]


def _seconds(answers: Sequence[dict[str, Any]]) -> float:
    """From the first that began to the last that ended: the clock is the machine's."""
    return float(max(each["ended"] for each in answers) - min(each["began"] for each in answers))
