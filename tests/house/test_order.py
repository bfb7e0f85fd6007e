"""A list of what begins that names what is gone would order nothing, and nobody would see it."""

from pathlib import Path

import pytest

from tests.order import FIRST, TOGETHER

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted({*FIRST, *TOGETHER}))
def test_what_begins_is_there(path):
    assert (ROOT / path).exists()
