"""Products of whole numbers whose sums are exact in floating point, and their one right answer.

The left matrix is `[P | P + D]`, the right one `[Q ; -Q]`, so their product is `-D Q`. P takes the
whole width of a 16-bit float's significand, Q is small, D is -1, 0 or 1. Therefore:

- every product of two entries, and every sum of any of them in any order, is a whole number below
  2**23 (`DEPTH` x 2047 x 4): a sum of 32 bits holds it exactly, with or without the extra bits that
  tensor cores keep or cut when they align what they add; the order of the sums does not matter;
- every entry of the result is at most `DEPTH / 2` x 4 = 2048: a 16-bit float holds it exactly.

So all devices, all libraries and both arithmetics must agree to the last bit. A device adds the
product and takes it off again, in turn, an odd number of times: whatever went wrong in one of them
stays in the result, and one look at the end of a batch sees it.
"""

from dataclasses import dataclass

from probes.compute.backend import FRACTION, Arithmetic, Array, Device

DEPTH = 1_024
WIDEST, SMALL = 2_046, 4
"""The largest entry of P, and of Q."""
LARGE = 8_192
"""Rows and columns: enough work that a device computes more than it moves."""
SEEDS = 1 << 32
MASK = (1 << 64) - 1
_ROWS_AT_ONCE = 1_024
"""Of the result, turned into whole numbers at a time, which takes four times the room."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`rows` x `depth` times `depth` x `columns`; ValueError where sums would not be exact.

    Of each `seed` the numbers are others.
    """

    rows: int = LARGE
    depth: int = DEPTH
    columns: int = LARGE
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.depth <= DEPTH or self.depth % 2:
            raise ValueError(f"a depth is even, and at most {DEPTH}: {self.depth}")
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"a seed is from 0 to before {SEEDS}: {self.seed}")

    @property
    def operations(self) -> int:
        """Multiplications and additions of one product."""
        return 2 * self.rows * self.depth * self.columns


def _mixed(device: Device, rows: int, columns: int, seed: int) -> Array:
    """Whole numbers that look random and are the same everywhere."""
    bits = device.count(0, rows * columns) * _signed(0x9E3779B97F4A7C15) + seed
    for shift, factor in ((29, 0xBF58476D1CE4E5B9), (31, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> shift)) * _signed(factor)
    return (bits ^ (bits >> 33)).reshape(rows, columns)


def _signed(number: int) -> int:
    return number - (1 << 64)


def _seed(shape: Shape, matrix: int) -> int:
    return shape.seed * 8 + matrix


def _wide(device: Device, shape: Shape) -> Array:
    return _around(_mixed(device, shape.rows, shape.depth // 2, _seed(shape, 1)), WIDEST)


def _steps(device: Device, shape: Shape) -> Array:
    return _around(_mixed(device, shape.rows, shape.depth // 2, _seed(shape, 2)), 1)


def _small(device: Device, shape: Shape) -> Array:
    return _around(_mixed(device, shape.depth // 2, shape.columns, _seed(shape, 3)), SMALL)


def _around(bits: Array, most: int) -> Array:
    """From `-most` to `most`."""
    return (bits & MASK >> 1) % (2 * most + 1) - most


def _row_weights(device: Device, shape: Shape) -> Array:
    """Odd, so that one wrong entry changes the sum for certain."""
    return _mixed(device, shape.rows, 1, _seed(shape, 4)) | 1


def _column_weights(device: Device, shape: Shape) -> Array:
    return _mixed(device, 1, shape.columns, _seed(shape, 5)) | 1


def expected_sum(device: Device, shape: Shape) -> int:
    """The weighted sum of the result, modulo 2**64, without any product of matrices."""
    steps = (_steps(device, shape) * _row_weights(device, shape)).sum(0)
    small = (_small(device, shape) * _column_weights(device, shape)).sum(1)
    return device.total(-steps * small << FRACTION)


class Factory:
    """The matrices of one arithmetic on one device, and room for their product."""

    def __init__(self, device: Device, shape: Shape, arithmetic: Arithmetic) -> None:
        """May raise what the device raises when memory is short."""
        self._device, self._shape = device, shape
        wide, small = _wide(device, shape), _small(device, shape)
        near = wide + _steps(device, shape)
        self._left = device.numbers(device.join(wide, near, 1), arithmetic)
        self._right = device.numbers(device.join(small, -small, 0), arithmetic)
        self._out = device.zeros(shape.rows, shape.columns, arithmetic)
        self._weights = _row_weights(device, shape), _column_weights(device, shape)

    def batch(self, products: int) -> tuple[object, object]:
        """Tell the device to make so many products, an odd number; the marks around them."""
        assert products % 2 == 1
        self._device.clear(self._out)
        first = self._device.mark()
        for number in range(products):
            self._device.add_product(self._out, self._left, self._right, -1 if number % 2 else 1)
        return first, self._device.mark()

    def sum(self) -> int:
        """The weighted sum of what there is now; waits for it."""
        rows, columns = self._weights
        total = 0
        for start in range(0, self._shape.rows, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            whole = self._device.whole(self._out[part])
            total += self._device.total(whole * rows[part] * columns)
        return total & MASK
