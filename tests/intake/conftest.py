"""The world of one test."""

import pytest

from tests.intake.world import a_world


@pytest.fixture
async def world(tmp_path):
    async with a_world(tmp_path) as running:
        yield running
