"""The process as its supervisor sees it: what it says, how it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console import exits

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@contextmanager
def worker(folder: Path, *flags: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    config = folder / "kubeconfig"
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


def test_it_waits_for_a_temporal_that_is_away_and_stops_when_told(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    with worker(tmp_path, "--role", "incidents", TEMPORAL_ADDRESS=address) as process:
        assert address in said(process, "what=waiting for=temporal")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == exits.OK
    assert out == ""


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--role", "watcher", "--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("--role", "nobody"), "invalid choice"),
    ],
)
def test_bad_usage_is_said_and_ends_with_two(tmp_path, flags, words):
    with worker(tmp_path, *flags) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == exits.USAGE
    assert words in err


def test_a_namespace_without_our_attributes_is_refused_with_the_command(tmp_path, bare_temporal):
    with worker(tmp_path, "--role", "incidents", TEMPORAL_ADDRESS=bare_temporal) as process:
        line = said(process, "what=refused")
        process.communicate(timeout=30)
    assert process.returncode == exits.FOUND
    assert "temporal operator search-attribute create --name Cluster --type Keyword" in line


@pytest.fixture
def bare_temporal(tmp_path: Path) -> Iterator[str]:
    """A Temporal in which nothing was registered."""
    address = ("127.0.0.1", free_port())
    command = ["temporal", "server", "start-dev", "--headless", "--log-level", "never"]
    server = subprocess.Popen([*command, "--port", str(address[1])], stdout=subprocess.DEVNULL)
    try:
        yield f"{address[0]}:{address[1]}"
    finally:
        server.kill()
        server.wait()
