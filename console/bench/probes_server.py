"""The simulator's API server for a benchmark, with one Node, and when its conditions change."""

import contextlib
import http.client
import json
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NODE = "bench"


@dataclass(slots=True)
class Server:
    """Where it is, and what the conditions of its Node said last: all messages as one text."""

    url: str
    token: Path
    said: str = ""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _at: float = 0.0

    def until(self, words: str, there: bool, seconds: float) -> float:
        """The moment (monotonic) since which these words are said, or no more; TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: (words in self.said) is there, seconds):
                raise TimeoutError(f"{words!r} never came or went")
            return self._at

    def watch(self) -> None:
        """Follow the Node until the server goes."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=600)
        headers = {"Authorization": f"Bearer {self.token.read_text()}"}
        connection.request("GET", "/api/v1/nodes?watch=true", headers=headers)
        answer = connection.getresponse()
        with contextlib.suppress(OSError, http.client.HTTPException):
            while line := answer.readline():
                self._take(json.loads(line), time.monotonic())

    def _take(self, event: dict[str, Any], now: float) -> None:
        conditions = event["object"].get("status", {}).get("conditions") or ()
        with self._changed:
            self.said = "\n".join(str(each.get("message", "")) for each in conditions)
            self._at = now
            self._changed.notify_all()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The server as a process of its own, over plain HTTP on loopback."""
    folder.mkdir()
    token, tokens = folder / "token", folder / "tokens.csv"
    token.write_text(secrets.token_hex(16))
    tokens.write_text(f'{token.read_text()},admin,admin,"system:masters"\n')
    command = [sys.executable, "-m", "simulator.apiserver", "--dir", str(folder)]
    command += ["--tokens", str(tokens)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    try:
        assert process.stdout
        url = process.stdout.readline().partition("url=")[2].split()[0]
        server = Server(url, token)
        _create(server, "/api/v1/namespaces", {"metadata": {"name": "gpumend"}})
        _create(server, "/api/v1/nodes", {"metadata": {"name": NODE}})
        threading.Thread(target=server.watch, daemon=True).start()
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _create(server: Server, path: str, body: dict[str, object]) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    headers = {
        "Authorization": f"Bearer {server.token.read_text()}",
        "Content-Type": "application/json",
    }
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    if answer.status not in (201, 409):
        raise RuntimeError(f"{path}: {answer.status} {answer.read()[:200]!r}")
    connection.close()
