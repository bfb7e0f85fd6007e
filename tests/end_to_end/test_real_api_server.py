"""The same way with the real kube-apiserver in place of the simulated one."""

import os

import pytest

from simulator.controlplane.programs import missing
from tests.end_to_end.script import went_as_scripted


@pytest.mark.loopback
def test_the_same_run_passes_on_the_real_kube_apiserver(demo):
    if absent := missing():
        text = f"{' and '.join(absent)} not built: run `uv run poe controlplane` once"
        if os.environ.get("GPUMEND_REQUIRE_CONTROLPLANE"):
            pytest.fail(text)
        pytest.skip(text)
    went_as_scripted(demo("--nodes", "8", "--seed", "1", "--real"))
