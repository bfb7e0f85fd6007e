"""Fixtures that several folders need."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster import Temporal, cluster_in
from tests.order import ByFile, turn

# A machine under load is no failure: examples are counted, not timed. One commit tries the same
# examples everywhere, so that a failure is the commit's; GPUMEND_SEARCH=1 looks for new ones.
settings.register_profile(
    "gpumend",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("GPUMEND_SEARCH"),
)
settings.load_profile("gpumend")

# Tests start hundreds of interpreters. Where bytecode is not kept, each compiles all that it
# imports anew: half of the time that a worker takes to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: whoever runs a demo mostly waits."""
    del config
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """In the order of `tests/order.py`; the order within a file stays."""
    items.sort(key=turn)


def pytest_xdist_make_scheduler(config, log):
    """Also by `tests/order.py`."""
    return ByFile(config, log)


@pytest.fixture
async def cluster(tmp_path):
    """A cluster whose kubelet obeys."""
    async with cluster_in(tmp_path) as running:
        yield running


@pytest.fixture
async def quiet_cluster(tmp_path):
    """A cluster without kubelets: nothing that we ask for ever happens on a node."""
    async with cluster_in(tmp_path, kubelet=False) as running:
        yield running


@pytest.fixture
def temporal():
    return Temporal()
