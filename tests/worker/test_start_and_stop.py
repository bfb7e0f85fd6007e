"""The process as its supervisor sees it: what it says, how it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from activities.search_attributes import KEYS
from console import exits
from fleet.mark import MarkState
from tests.intake.world import SICK, a_world

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
KINDS = {1: "Text", 2: "Keyword", 5: "Bool", 6: "Datetime", 7: "KeywordList"}


@contextmanager
def worker(folder: Path, *flags: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Kubernetes is away unless a kubeconfig is in the folder."""
    config = folder / "kubeconfig"
    if not config.exists():
        config.write_text(KUBECONFIG)
    process = subprocess.Popen(
        [sys.executable, "-m", "worker", "--cluster", "c", *flags],
        env={**os.environ, "KUBECONFIG": str(config), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str], words: str) -> str:
    assert process.stderr
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it never said {words!r}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(("role", "what"), [("incidents", "temporal"), ("watcher", "kubernetes")])
def test_it_says_what_is_away_waits_for_it_and_stops_when_told(tmp_path, role, what):
    address = f"127.0.0.1:{free_port()}"
    with worker(tmp_path, "--role", role, TEMPORAL_ADDRESS=address) as process:
        line = said(process, f"what=waiting for={what}")
        assert what == "kubernetes" or address in line
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == exits.OK
    assert out == ""


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--role", "watcher", "--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("--role", "nobody"), "one of incidents, watcher, all"),
    ],
)
def test_bad_usage_is_said_and_ends_with_two(tmp_path, flags, words):
    with worker(tmp_path, *flags) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == exits.USAGE
    assert words in err


CALLS_A_WEBHOOK = """
import httpx, worker
worker._log_to_stderr()
answers = httpx.MockTransport(lambda request: httpx.Response(200))
httpx.Client(transport=answers).get("http://hooks.example.org/secret")
"""


def test_the_address_of_a_webhook_is_not_logged():
    command = [sys.executable, "-c", CALLS_A_WEBHOOK]
    assert not subprocess.run(command, check=True, capture_output=True).stderr


def test_a_namespace_without_our_attributes_is_refused_with_the_command(tmp_path, temporal_server):
    address = temporal_server()
    with worker(tmp_path, "--role", "watcher", TEMPORAL_ADDRESS=address) as process:
        line = said(process, "what=refused")
        process.communicate(timeout=30)
    assert process.returncode == exits.FOUND
    assert "temporal operator search-attribute create --name Cluster --type Keyword" in line


@pytest.mark.parametrize("role", ["watcher", "incidents"])
def test_a_namespace_that_forgets_attempts_too_soon_is_refused(tmp_path, temporal_server, role):
    address = temporal_server(0, *registered())
    with worker(tmp_path, "--role", role, TEMPORAL_ADDRESS=address) as process:
        line = said(process, "what=refused")
        process.communicate(timeout=30)
    assert process.returncode == exits.FOUND
    assert "temporal operator namespace update --retention 720h" in line


def test_a_namespace_that_is_not_there_is_waited_for_with_the_command(tmp_path, temporal_server):
    there = {"TEMPORAL_ADDRESS": temporal_server(), "TEMPORAL_NAMESPACE": "elsewhere"}
    with worker(tmp_path, "--role", "incidents", **there) as process:
        assert "temporal operator namespace create --namespace elsewhere" in said(
            process, "for=temporal"
        )


async def test_a_sick_node_is_held_while_temporal_is_away_and_taken_up_when_it_is_back(
    tmp_path, temporal_server
):
    port, policy = free_port(), tmp_path / "policy.yaml"
    policy.write_text("faults: {gpu-lost: {steps: []}}")
    async with a_world(tmp_path) as world:
        await world.add_node("n1", SICK)
        address = {"TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}
        with worker(tmp_path, "--role", "watcher", "--policy", str(policy), **address) as watcher:
            node = await world.marked("n1", MarkState.PENDING)
            assert node.hold is not None
            assert watcher.poll() is None
            temporal_server(port, *registered())
            flags = ("--role", "incidents", "--policy", str(policy))
            with worker(tmp_path, *flags, **address) as incidents:
                await world.marked("n1", MarkState.OWNED)
                for process in (watcher, incidents):
                    process.send_signal(signal.SIGTERM)
                    process.communicate(timeout=60)
                    assert process.returncode == exits.OK


def registered() -> list[str]:
    """Flags of a server that knows our search attributes and keeps closed runs long enough."""
    pairs = (f"{each.name}={KINDS[int(each.indexed_value_type)]}" for each in KEYS)
    return [word for pair in pairs for word in ("--search-attribute", pair)]


@pytest.fixture
def temporal_server() -> Iterator[Callable[..., str]]:
    """Starts a Temporal, in which nothing is registered unless flags say so."""
    servers: list[subprocess.Popen[bytes]] = []

    def start(port: int = 0, *flags: str) -> str:
        port = port or free_port()
        command = ["temporal", "server", "start-dev", "--headless", "--log-level", "never"]
        command += ["--port", str(port), *flags]
        servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        return f"127.0.0.1:{port}"

    try:
        yield start
    finally:
        for server in servers:
            server.kill()
            server.wait()
