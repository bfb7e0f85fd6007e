"""Whether a node's GPUs are used, against the API server."""

from typing import Any

import pytest

from activities.idle import IN_USE, IdleActivities
from fleet.outcome import OutcomeKind
from fleet.reason import HOLD_REMOVED
from fleet.step import Step
from tests.cluster import pod_manifest, request_for, running

GPU: dict[str, Any] = {
    "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
}
FINISHED = {"phase": "Succeeded"}


async def looked(cluster, temporal, node):
    return await temporal.run(IdleActivities(cluster.api).idle, request_for(node, Step.IDLE))


async def test_a_job_with_a_gpu_keeps_the_node_in_use_and_is_named(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("train-0", **GPU))
    outcome = await looked(cluster, temporal, node)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, IN_USE)
    assert "default/train-0" in outcome.detail


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        (pod_manifest("web"), running()),
        (pod_manifest("train-0", "n2", **GPU), running()),
        (pod_manifest("device-plugin", owner="DaemonSet", **GPU), running()),
        (pod_manifest("train-0", **GPU), FINISHED),
    ],
    ids=["without a GPU", "elsewhere", "of the node", "finished"],
)
async def test_what_holds_no_gpu_of_this_node_for_a_job_leaves_it_idle(
    cluster, temporal, pod, status
):
    node = await cluster.add_node()
    await cluster.add_pod({**pod, "status": status})
    outcome = await looked(cluster, temporal, node)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert cluster.writes() == []


async def test_a_rehearsal_looks_at_a_node_that_carries_nothing_of_ours(cluster, temporal):
    node = await cluster.add_node(marked=None, taints=[])
    await cluster.add_pod(pod_manifest("train-0", **GPU))
    request = request_for(node, Step.IDLE, dry=True)
    outcome = await temporal.run(IdleActivities(cluster.api).idle, request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, IN_USE)


async def test_a_hold_that_was_taken_off_is_told(cluster, temporal):
    node = await cluster.add_node(taints=[])
    outcome = await looked(cluster, temporal, node)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, HOLD_REMOVED)
