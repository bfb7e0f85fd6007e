"""The one Temporal server of a session, and commands as a shell starts them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from console.main import main
from tests.temporal.conftest import server, temporal_binary

__all__ = ["server", "temporal_binary"]

NOWHERE = "127.0.0.1:1"


@dataclass
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Awaitable[Ended]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `gpumend ...` beside the servers of the test; both are away at first."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "default")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")

    async def run(*words: str) -> Ended:
        capsys.readouterr()
        try:
            status = await asyncio.to_thread(main, list(words))
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = capsys.readouterr()
        return Ended(status, said.out, said.err)

    return run


@pytest.fixture
def at_temporal(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Points commands to the server of the session."""

    def point(environment: Any) -> None:
        address = environment.client.service_client.config.target_host
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)

    return point
