"""The products are exact by construction, and one wrong bit anywhere changes their sum."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.compute.backend import Arithmetic
from probes.compute.numpy_backend import NumpyDevice
from probes.compute.products import DEPTH, SEEDS, SMALL, WIDEST, Factory, Shape, expected_sum
from tests.compute import broken

shapes = st.builds(
    Shape,
    rows=st.integers(1, 12),
    depth=st.integers(1, 8).map(lambda half: 2 * half),
    columns=st.integers(1, 12),
    seed=st.integers(0, SEEDS - 1),
)


def matrices(factory):
    """Left, right and result as Python's own whole numbers, which have no width."""
    return [each.astype(int).tolist() for each in (factory._left, factory._right, factory._out)]


@given(shape=shapes)
@settings(max_examples=30, deadline=None)
def test_the_expected_sum_is_that_of_the_schoolbook_product(shape):
    factory = Factory(NumpyDevice(), shape, Arithmetic.HALF)
    factory.batch(3)
    left, right, result = matrices(factory)
    schoolbook = [
        [sum(a * right[k][j] for k, a in enumerate(row)) for j in range(shape.columns)]
        for row in left
    ]
    assert result == schoolbook
    rows, columns = (each.ravel().tolist() for each in factory._weights)
    weighted = sum(
        value * rows[i] * columns[j] for i, row in enumerate(result) for j, value in enumerate(row)
    )
    assert factory.sum() == weighted * 2**24 % 2**64 == expected_sum(NumpyDevice(), shape)


def test_no_sum_leaves_what_a_float_holds_exactly_and_no_result_what_half_a_one_does():
    factory = Factory(NumpyDevice(), Shape(48, DEPTH, 56), Arithmetic.HALF)
    factory.batch(1)
    left, right = factory._left.astype("i8"), factory._right.astype("i8")
    assert abs(left).max() <= WIDEST + 1 <= 2**11
    assert abs(right).max() == SMALL
    assert (abs(left) @ abs(right)).max() < 2**23
    assert DEPTH * (WIDEST + 1) * SMALL < 2**23
    assert DEPTH // 2 * SMALL == 2**11
    halves = factory._out.astype(numpy.float16)
    assert (halves.astype("f4") == factory._out).all()


@given(
    product=st.integers(0, 4),
    row=st.integers(0, broken.SMALL.rows - 1),
    column=st.integers(0, broken.SMALL.columns - 1),
    bit=st.integers(0, 31),
)
@settings(max_examples=60, deadline=None)
def test_a_flipped_bit_in_any_product_of_a_batch_changes_the_sum(product, row, column, bit):
    device = broken.Device(spoilt=product, entry=(row, column), bit=bit)
    factory = Factory(device, broken.SMALL, Arithmetic.HALF)
    factory.batch(5)
    clean = Factory(NumpyDevice(), broken.SMALL, Arithmetic.HALF)
    clean.batch(5)
    with numpy.errstate(invalid="ignore"):
        off = abs(factory._out.astype("f8") - clean._out.astype("f8"))
    same = (off < 2.0**-24).all()  # a flip in a zero may drown in what is added to it
    assert (factory.sum() == expected_sum(NumpyDevice(), broken.SMALL)) == same


@pytest.mark.parametrize("depth", [0, 1, 3, DEPTH + 2])
def test_a_depth_whose_sums_would_not_be_exact_is_refused(depth):
    with pytest.raises(ValueError, match="depth"):
        Shape(8, depth, 8)


def test_a_seed_makes_other_numbers_of_the_same_kind_and_only_known_ones_are_taken():
    sums = {expected_sum(NumpyDevice(), Shape(8, 8, 8, seed)) for seed in (0, 1, SEEDS - 1)}
    assert len(sums) == 3
    with pytest.raises(ValueError, match="seed"):
        Shape(8, 8, 8, SEEDS)
