"""`/metrics` of a process: one registry, served by a thread of its own so that a busy loop is seen.

What is measured is in the collectors; here is only the way out.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

_log = logging.getLogger("gpumend.worker")


class CannotServe(Exception):
    """The address is taken or not ours; the message says which."""


@contextmanager
def serving(address: tuple[str, int] | None, registry: CollectorRegistry) -> Iterator[int | None]:
    """Serve the registry there, and yield the port; nothing is served without an address."""
    if address is None:
        yield None
        return
    host, port = address
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as problem:
        raise CannotServe(f"metrics cannot be served on {host}:{port}: {problem}") from problem
    _log.info("what=metrics at=%s:%d", host, server.server_port)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
