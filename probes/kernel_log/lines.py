"""A file or pipe as numbered lines, in bounded memory whatever is in it."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

CHUNK = 1 << 20
"""Bytes read at once."""
MAX_LINE = 1 << 20
"""A longer line is read in pieces of about this many bytes, all with its number. Pieces end
before a message head where one is near, so that what is lost is at most one message each."""
_HEAD = b"NVRM:"
_REACH = 4096


class Source(Protocol):
    """What is read: a binary file, or a pipe."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, as soon as there are some; empty at the end."""


class Block(NamedTuple):
    """Lines that were read together, without their newlines.

    first: number of the first, from 1. step: 1, or 0 where they are pieces of one long line.
    """

    first: int
    step: int
    lines: list[bytes]


def blocks(source: Source) -> Iterator[Block]:
    """The lines of a file or pipe, as they come."""
    number, pending = 1, b""
    while chunk := source.read1(CHUNK):
        lines = (pending + chunk).split(b"\n")
        pending = lines.pop()
        if lines and len(lines[0]) > MAX_LINE:
            yield Block(number, 0, list(_pieces(lines.pop(0))))
            number += 1
        if lines:
            yield Block(number, 1, lines)
            number += len(lines)
        if len(pending) > MAX_LINE:
            *pieces, pending = _pieces(pending)
            yield Block(number, 0, pieces)
    if pending:
        yield Block(number, 1, [pending])


def _pieces(line: bytes) -> Iterator[bytes]:
    while len(line) > MAX_LINE:
        head = line.rfind(_HEAD, MAX_LINE - _REACH, MAX_LINE)
        cut = head if head > 0 else MAX_LINE
        yield line[:cut]
        line = line[cut:]
    yield line
