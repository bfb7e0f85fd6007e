"""Our own tools on a machine of their own, gone with the test."""

import pytest

from tests.tools.machine import Tools


@pytest.fixture
def tools(tmp_path):
    tools = Tools(tmp_path / "m")
    yield tools
    tools.end()
