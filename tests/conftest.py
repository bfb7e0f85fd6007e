"""Fixtures that several folders need."""

import pytest

from tests.cluster import Temporal, cluster_in


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
