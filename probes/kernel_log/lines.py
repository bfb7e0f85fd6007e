"""A file or pipe as numbered lines, in bounded memory whatever is in it."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

CHUNK = 1 << 18
"""Bytes read at once."""
MAX_LINE = 1 << 20
"""A longer line may be read in pieces of about this many bytes, all with its number. They end
before a message head where one is near, so that what is lost is at most one message each."""
_HEAD = b"NVRM:"
_REACH = 4096


class Source(Protocol):
    """What is read: a binary file, or a pipe."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, as soon as there are some; empty at the end."""


class Block(NamedTuple):
    """Whole lines that were read together, newlines between them, none at the end.

    first: number of the first, from 1. Pieces of one long line are blocks of the same number.
    """

    first: int
    data: bytes


def blocks(source: Source) -> Iterator[Block]:
    """The lines of a file or pipe, as they come."""
    number, pending = 1, b""
    while chunk := source.read1(CHUNK):
        whole, newline, pending = (pending + chunk).rpartition(b"\n")
        if newline:
            yield Block(number, whole)
            number += whole.count(b"\n") + 1
        while len(pending) > MAX_LINE:
            head = pending.rfind(_HEAD, MAX_LINE - _REACH, MAX_LINE)
            cut = head if head > 0 else MAX_LINE
            yield Block(number, pending[:cut])
            pending = pending[cut:]
    if pending:
        yield Block(number, pending)
