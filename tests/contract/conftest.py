"""Two servers, one set of tests: what holds for the real API server holds for ours."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from simulator.controlplane.endpoint import Endpoint, read_tokens
from simulator.controlplane.programs import missing
from simulator.controlplane.real import RealControlPlane
from tests.contract.client import Client


class Server:
    """A running API server, and the two things only its host can do."""

    def __init__(self, name: str, endpoint: Endpoint):
        self.name = name
        self.endpoint = endpoint

    def compact(self):
        raise NotImplementedError


class Emulated(Server):
    def compact(self):
        url = f"{self.endpoint.url}/sim/compact"
        httpx.post(url, headers=self.endpoint.headers()).raise_for_status()


class Real(Server):
    def __init__(self, plane: RealControlPlane):
        super().__init__("real", plane.endpoint)
        self._plane = plane

    def compact(self):
        beside(self._plane.compact())


@pytest.fixture(scope="session")
def emulated():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "simulator.apiserver", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            ready = process.stdout.readline().split()
            assert ready[:1] == ["ready"], ready
            path = Path(folder)
            url = ready[1].removeprefix("url=")
            yield Emulated(
                "emulated",
                Endpoint(url, None, read_tokens(path / "tokens.csv"), path / "audit.log"),
            )
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="session")
def real():
    if absent := missing():
        text = f"{' and '.join(absent)} not built: run `uv run poe controlplane` once"
        if os.environ.get("GPUMEND_REQUIRE_CONTROLPLANE"):
            pytest.fail(text)
        pytest.skip(text)
    plane = RealControlPlane()
    beside(plane.__aenter__())
    try:
        yield Real(plane)
    finally:
        plane.stop()


def beside(coroutine):
    """Run a coroutine on a loop of its own, beside the loop of the tests."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture(params=["emulated", pytest.param("real", marks=pytest.mark.loopback)])
def server(request):
    """Both servers, each started once and kept: the parameter only chooses."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def api(server):
    async with Client(server.endpoint) as client:
        yield client


@pytest.fixture
async def namespace(api):
    name = unique("t")
    await api.created("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
async def node(api):
    """A Node of its own for one test."""
    name = unique("node")
    body = {
        "metadata": {"name": name, "labels": {"pool": name}},
        "status": {"conditions": [condition("Ready", "True")]},
    }
    made = await api.created("/api/v1/nodes", body)
    yield made
    await api.delete(f"/api/v1/nodes/{name}")


def unique(prefix):
    return f"{prefix}-{secrets.token_hex(5)}"


def condition(kind, status, reason="Test", message="m"):
    return {"type": kind, "status": status, "reason": reason, "message": message}
