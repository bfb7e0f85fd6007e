"""What a kernel needs of a device: 64-bit integers with their operators, and products.

An `Array` is the library's own; `+ - * & ^ << >>`, slicing and broadcasting of whole numbers mean
the same in all of them, and wrap at 64 bits. Nothing here knows what is tested.
"""

from enum import StrEnum
from typing import Any, Protocol

Array = Any
FRACTION = 24
"""Bits behind the point that are looked at: all that a 16-bit float has."""


class OutOfMemory(Exception):
    """The device has less memory left than was asked for."""


class Arithmetic(StrEnum):
    """In which a product is computed. HALF: 16-bit inputs, sums of 32 bits (the tensor cores of a
    GPU); SINGLE: 32 bits throughout (its other cores).
    """

    HALF = "half"
    SINGLE = "single"


class Device(Protocol):
    """One GPU, or a CPU in its place. Everything may raise RuntimeError, in the library's words."""

    @property
    def pci(self) -> str:
        """Its short PCI address; empty where it has none."""

    @property
    def model(self) -> str:
        """What its driver calls it."""

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and bytes that there are."""

    def reserve(self, words: int) -> Array:
        """So many words of memory, with anything in them; raises OutOfMemory."""

    def let_go(self) -> None:
        """Give back what a library keeps of memory that is used no more."""

    def count(self, start: int, stop: int) -> Array:
        """The whole numbers from `start` to before `stop`."""

    def store(self, block: Array, start: int, values: Array) -> None:
        """Write `values` into a block, from a word on."""

    def differing(self, found: Array, expected: Array) -> tuple[int, int, int]:
        """How many words differ, the first of them, and the bits in which that one does."""

    def numbers(self, array: Array, arithmetic: Arithmetic) -> Array:
        """Whole numbers as an arithmetic holds them."""

    def zeros(self, rows: int, columns: int, arithmetic: Arithmetic) -> Array:
        """Room for a result."""

    def join(self, first: Array, second: Array, axis: int) -> Array:
        """Two arrays, one behind the other."""

    def add_product(self, out: Array, left: Array, right: Array, sign: int) -> None:
        """`out += sign * (left @ right)`, where sign is 1 or -1."""

    def clear(self, out: Array) -> None:
        """All zeros."""

    def whole(self, array: Array) -> Array:
        """Back to 64-bit whole numbers, of units of 2**-FRACTION: an error is hardly ever whole."""

    def total(self, array: Array) -> int:
        """The sum, modulo 2**64."""

    def mark(self) -> Any:
        """A moment in the order of what the device was told to do."""

    def seconds(self, first: Any, last: Any) -> float:
        """Between two marks; waits until the device has reached the second."""

    def settle(self) -> None:
        """Wait until everything that it was told is done."""

    def carry(self, words: int, times: int) -> tuple[float, float, int]:
        """Copy host memory in and out; bytes a second each way, and words that came back wrong."""
