"""A machine with its kubelet, in front of an API server of its own."""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from simulator.apiserver.server import ApiServer
from simulator.client import Api, ApiError
from simulator.hardware.machine import Machine
from simulator.kubelet.node import NodeSpec
from simulator.powered import Config, Place, PoweredMachine

PATIENCE = 20.0
"""Seconds after which an event that should come is taken to be missing."""


class Stage:
    """One machine that is played, and the API that its kubelet talks to."""

    def __init__(self, server: ApiServer, api: Api, machine: Machine) -> None:
        self.server = server
        self.api = api
        self.machine = machine

    async def until(self, path, wanted):
        """The object at `path` as soon as it is as `wanted`."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(ApiError):
                    found = await self.api.get(path)
                    if wanted(found):
                        return found
                await asyncio.sleep(0.02)

    async def gone(self, path):
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self._code(path) == 404:
                    return
                await asyncio.sleep(0.02)

    async def _code(self, path):
        try:
            await self.api.get(path)
        except ApiError as error:
            return error.code
        return 200

    async def pod(self, name, **spec):
        body = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": "node-1",
                "restartPolicy": "Never",
                "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
                **spec,
            },
        }
        return await self.api.create(PODS, body)

    async def node(self):
        return await self.api.get("/api/v1/nodes/node-1")


PODS = "/api/v1/namespaces/gpumend/pods"


def shell(script, **container):
    """A container that runs a line of shell with the host's root at /host."""
    return {
        "name": "step",
        "image": "gpumend",
        "command": ["/bin/sh", "-c", script],
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
        **container,
    }


def python(script, *arguments, **container):
    """As `shell`, a line of Python with arguments (which are paths inside the container)."""
    return shell("", **container) | {"command": [sys.executable, "-S", "-c", script, *arguments]}


@pytest.fixture
async def server(tmp_path: Path):
    async with ApiServer(tmp_path / "api") as running:
        yield running


@pytest.fixture
async def api(server):
    async with Api(server.endpoint.url, server.endpoint.tokens["admin"]) as client:
        yield client


@pytest.fixture
async def stage(tmp_path: Path, server, api):
    machine = Machine.create(tmp_path / "node-1", "node-1", gpus=4)
    spec = NodeSpec("node-1", {"pool": "p"}, "sim://node-1", lease=2)
    place = Place(machine.base, spec, server.endpoint.tokens["admin"])
    played = PoweredMachine(Config(server.endpoint.url, "", boot=0.3, places=(place,)), place)
    task = asyncio.create_task(played.run())
    await asyncio.wait_for(played.up.wait(), PATIENCE)
    yield Stage(server, api, machine)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
