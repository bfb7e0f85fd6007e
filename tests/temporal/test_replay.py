"""Histories recorded from every branch must fit today's workflow code, whatever the hash seed.

To record them anew (after a change that breaks running incidents on purpose):
`GPUMEND_RECORD=1 uv run pytest -n0 tests/temporal`.
"""

import os
import subprocess
import sys

import pytest

from tests.temporal.running import REPLAY


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_recorded_histories_replay_under_any_hash_seed(seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "tests.temporal.replaying", str(REPLAY)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) == len(list(REPLAY.glob("*.json"))) > 10
