"""Fixtures that several folders need."""

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster import Temporal, cluster_in

# A machine under load is no failure: examples are counted, not timed.
settings.register_profile("gpumend", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpumend")


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
