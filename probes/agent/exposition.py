"""`/metrics` of an agent: one thread, one connection at a time, and a limit to each.

Nothing of the agent waits for it. An address that is taken is said and tried again: an agent that
cannot be scraped still watches its node.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from probes.log import say

REQUEST_LIMIT = 16_384
"""Bytes of a request; one of a scraper has some hundreds."""
SECONDS = 2.0
"""For one connection, from its first byte to our last: whoever is slower is cut off."""
BACKLOG = 4
"""Connections that wait for their turn."""
RETRY = 30.0
"""Seconds between two tries to get an address."""
_KIND = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Exposition:
    """Serves `text` at an address, as host and port; port 0 is any. `port` is the one it got."""

    address: tuple[str, int]
    text: Callable[[], str]
    port: int = 0
    ready: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _listener: socket.socket | None = None

    def run(self) -> None:
        """Until stopped."""
        said = False
        while not self._stop.is_set():
            try:
                with self._listen() as listener:
                    self._serve(listener)
            except OSError as problem:
                if not said and not self._stop.is_set():
                    host, port = self.address
                    say("metrics cannot be served", at=f"{host}:{port}", problem=str(problem))
                said = True
                self._stop.wait(RETRY)

    def stop(self) -> None:
        """End the thread after the connection that it serves."""
        self._stop.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> socket.socket:
        host, port = self.address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self._listener, self.port = listener, listener.getsockname()[1]
        self.ready.set()
        say("metrics", at=f"{host}:{self.port}")
        return listener

    def _serve(self, listener: socket.socket) -> None:
        while not self._stop.is_set():
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                deadline = time.monotonic() + SECONDS
                answer = self._answer(_request(connection, deadline))
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                connection.sendall(answer)

    def _answer(self, request: bytes) -> bytes:
        method, path = (*request.split(b" ", 2), b"", b"")[:2]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"only GET\n")
        if path.partition(b"?")[0] != b"/metrics":
            return _response("404 Not Found", b"see /metrics\n")
        body = self.text().encode()
        return _response("200 OK", body, head=method == b"HEAD")


def _request(connection: socket.socket, deadline: float) -> bytes:
    """The head of a request, or as much of it as came in time; raises OSError where none did."""
    said = b""
    while b"\r\n\r\n" not in said and len(said) < REQUEST_LIMIT:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = connection.recv(4_096)
        if not chunk:
            break
        said += chunk
    return said


def _response(status: str, body: bytes, head: bool = False) -> bytes:
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {_KIND}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + (b"" if head else body)
