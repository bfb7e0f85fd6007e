"""A CPU in the place of a GPU: the same kernels on numpy, for tests and for the independent value.

Single precision stands for both arithmetics: it holds the same whole numbers.
"""

import time
from dataclasses import dataclass

import numpy

from probes.compute.backend import FRACTION, Arithmetic, Array, OutOfMemory

MASK = (1 << 64) - 1


@dataclass(slots=True)
class NumpyDevice:
    """One pretended device of `bytes_total` memory, of which others hold `bytes_held`."""

    pci: str = ""
    model: str = "numpy"
    bytes_total: int = 1 << 22
    bytes_held: int = 0
    bytes_used: int = 0

    def memory(self) -> tuple[int, int]:
        """Only what was reserved counts: the rest is the process's own."""
        return self.bytes_total - self.bytes_held - self.bytes_used, self.bytes_total

    def reserve(self, words: int) -> Array:
        """Up to the pretended size."""
        if 8 * words > self.memory()[0]:
            raise OutOfMemory(f"{8 * words} bytes")
        self.bytes_used += 8 * words
        return numpy.empty(words, numpy.int64)

    def let_go(self) -> None:
        """Nothing is kept."""

    def count(self, start: int, stop: int) -> Array:
        """See the protocol."""
        return numpy.arange(start, stop, dtype=numpy.int64)

    def store(self, block: Array, start: int, values: Array) -> None:
        """See the protocol."""
        block[start : start + len(values)] = values

    def differing(self, found: Array, expected: Array) -> tuple[int, int, int]:
        """See the protocol."""
        bits = found ^ expected
        where = numpy.flatnonzero(bits)
        if not len(where):
            return 0, 0, 0
        return len(where), int(where[0]), int(bits[where[0]]) & MASK

    def numbers(self, array: Array, arithmetic: Arithmetic) -> Array:
        """See the protocol."""
        del arithmetic
        return array.astype(numpy.float32)

    def zeros(self, rows: int, columns: int, arithmetic: Arithmetic) -> Array:
        """See the protocol."""
        del arithmetic
        return numpy.zeros((rows, columns), numpy.float32)

    def join(self, first: Array, second: Array, axis: int) -> Array:
        """See the protocol."""
        return numpy.concatenate((first, second), axis)

    def add_product(self, out: Array, left: Array, right: Array, sign: int) -> None:
        """See the protocol."""
        out += numpy.float32(sign) * (left @ right)

    def clear(self, out: Array) -> None:
        """See the protocol."""
        out[:] = 0

    def whole(self, array: Array) -> Array:
        """See the protocol."""
        with numpy.errstate(invalid="ignore"):  # what is no number at all becomes a wrong one
            scaled: Array = (array.astype(numpy.float64) * 2.0**FRACTION).astype(numpy.int64)
        return scaled

    def total(self, array: Array) -> int:
        """See the protocol."""
        return int(array.sum()) & MASK

    def mark(self) -> float:
        """A CPU does at once what it is told."""
        return time.perf_counter()

    def seconds(self, first: float, last: float) -> float:
        """Never nothing, so that a rate exists."""
        return max(last - first, 1e-9)

    def settle(self) -> None:
        """Nothing is under way."""

    def carry(self, words: int, times: int) -> tuple[float, float, int]:
        """Copies within the host: they show that the code runs, no link."""
        sent = self.count(0, words)
        there, back = numpy.empty_like(sent), numpy.empty_like(sent)
        began = time.perf_counter()
        for _ in range(times):
            there[:] = sent
        turned = time.perf_counter()
        for _ in range(times):
            back[:] = there
        done = time.perf_counter()
        size = 8 * words * times
        wrong = self.differing(back, sent)[0]
        return size / self.seconds(began, turned), size / self.seconds(turned, done), wrong
