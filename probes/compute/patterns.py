"""Write patterns over most of a device's memory, read them back, and count what differs.

Only memory of our own is written. Every word is written before any is read, so that what is read
comes out of the memory and not out of a cache. Each bit of each word is both 0 and 1 in turn.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from probes.compute.backend import Array, Device, OutOfMemory

SHARE = 0.95
"""Of the memory that is free: the driver needs the rest for the kernels themselves."""
LEAST_FREE = 0.90
"""Of the whole memory; where less is free, somebody else holds it, and nothing is tested."""
TILE_WORDS = 1 << 23
"""Written and compared at a time: 64 MiB, and some temporary copies of that."""
SPARE_TILES = 10
"""Room for the temporary copies."""
BLOCK_WORDS = 1 << 27
"""Reserved at a time: 1 GiB; one block of everything would need it in one piece."""
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of one device's memory.

    `held` is what others had of it when nothing could be tested; `patterns` of `of` were read
    back whole. `bad` words differed; `first` is the index of one, `bits` those in which it did.
    """

    size: int
    total: int
    held: int = 0
    patterns: int = 0
    of: int = 0
    bad: int = 0
    first: int = 0
    bits: int = 0
    pattern: str = ""


def _address(index: Array) -> Array:
    """Each word holds its own address, mixed: a broken address line shows twice."""
    return index * _ODD ^ index


def _walking(index: Array) -> Array:
    """One bit in 64, in another place from word to word."""
    return (index & 0) + 1 << (index & 63)


def _board(index: Array) -> Array:
    """Neighbours differ, in a word and from word to word."""
    return (index & 0) + 0x5555555555555555 ^ -(index & 1)


PATTERNS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "address": _address,
        "not-address": lambda index: ~_address(index),
        "walking-one": _walking,
        "walking-zero": lambda index: ~_walking(index),
        "checkerboard": _board,
        "not-checkerboard": lambda index: ~_board(index),
    }
)


class _OutOfTime(Exception):
    """Time ran out between two tiles."""


def examine_memory(device: Device, time_left: Callable[[], float], tile: int = TILE_WORDS) -> Kept:
    """Run the patterns while time is left; never raises for what the memory holds."""
    device.let_go()  # on a small board, the leavings of products pass for those of somebody else
    free, total = device.memory()
    blocks: list[Array] = []
    if free >= total * LEAST_FREE:
        blocks = _reserve(device, int(free * SHARE) // 8 - SPARE_TILES * tile, tile)
    if not blocks:
        return Kept(0, total, held=total - free)
    size = 8 * sum(len(each) for each in blocks)
    done = 0
    for name, pattern in PATTERNS.items():
        try:
            bad, first, bits = _apply(device, _Field(device, blocks, pattern, tile, time_left))
        except _OutOfTime:
            break
        if bad:
            return Kept(size, total, 0, done, len(PATTERNS), bad, first, bits, name)
        done += 1
    return Kept(size, total, patterns=done, of=len(PATTERNS))


def _reserve(device: Device, words: int, tile: int) -> list[Array]:
    """Blocks of most of it; fewer where the device gives out early."""
    blocks: list[Array] = []
    while words >= tile:
        try:
            blocks.append(device.reserve(min(words, BLOCK_WORDS)))
        except OutOfMemory:
            break
        words -= len(blocks[-1])
    return blocks


@dataclass(frozen=True, slots=True)
class _Field:
    """All blocks under one pattern."""

    device: Device
    blocks: list[Array]
    pattern: Callable[[Array], Array]
    tile: int
    time_left: Callable[[], float]

    def tiles(self) -> Iterator[tuple[Array, int, int, Array]]:
        """Each stretch of each block, its place in the whole, and what belongs there."""
        base = 0
        for block in self.blocks:
            for start in range(0, len(block), self.tile):
                if self.time_left() <= 0:
                    raise _OutOfTime
                stop = min(start + self.tile, len(block))
                words = self.pattern(self.device.count(base + start, base + stop))
                yield block, start, base + start, words
            base += len(block)


def _apply(device: Device, field: _Field) -> tuple[int, int, int]:
    """Write and read a pattern: words that differ, the first of them and its bits."""
    for block, start, _, words in field.tiles():
        device.store(block, start, words)
    number, first, bits = 0, 0, 0
    for block, start, place, words in field.tiles():
        bad, where, which = device.differing(block[start : start + len(words)], words)
        if bad and not number:
            first, bits = place + where, which
        number += bad
    return number, first, bits
