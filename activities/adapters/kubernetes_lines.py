"""A watch on the wire: one JSON event a line, in chunks that respect no line. Pure.

What the connection does when it is idle or breaks is the client's part.
"""

import json
from collections.abc import Iterator

from activities.adapters.kubernetes_answers import error_of_status
from fleet.errors import Transient
from fleet.ports import WatchEvent

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one event. etcd takes objects of 1.5 MiB; ten times that is not an object."""


class Lines:
    """Chunks in, whole lines out; holds at most one unfinished line."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk ends; raises Transient where one is longer than LINE_LIMIT."""
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._rest += line
            if self._rest.strip():
                yield bytes(self._rest)
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > LINE_LIMIT:
            raise Transient(f"a watch sent a line of more than {LINE_LIMIT} bytes")


def read_event(line: bytes) -> WatchEvent:
    """One event; an ERROR event raises what its Status means (410: Expired)."""
    try:
        event = json.loads(line)
        kind, thing = str(event["type"]), event["object"]
    except (ValueError, KeyError, TypeError) as problem:
        raise Transient(f"a watch sent what is no event: {line[:200]!r}") from problem
    if kind == "ERROR":
        raise error_of_status(thing, code=int(thing.get("code") or 500), write=False)
    return WatchEvent(kind, thing)
