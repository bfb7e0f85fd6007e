"""Where no Temporal is named, or its settings cannot be read: words, never a traceback."""

import pytest

from activities.adapters import temporal_connection
from console import exits
from tests.console.conftest import NOWHERE


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"TEMPORAL_ADDRESS": ""}, f"Temporal at {NOWHERE}"),
        ({"TEMPORAL_CONFIG_FILE": "{broken}"}, "the settings of Temporal cannot be read"),
        ({"TEMPORAL_TLS_CLIENT_CERT_PATH": "/nowhere"}, "'/nowhere'"),
    ],
)
async def test_a_command_says_which_temporal_it_missed(
    command, monkeypatch, tmp_path, settings, says
):
    broken = tmp_path / "temporal.toml"
    broken.write_text("[[[profile")
    monkeypatch.setattr(temporal_connection, "LOCAL", NOWHERE)  # this machine may have a real one
    for name, value in settings.items():
        monkeypatch.setenv(name, value.format(broken=broken))
    ended = await command("incidents")
    assert ended.status == exits.UNREACHABLE
    assert says in ended.err
