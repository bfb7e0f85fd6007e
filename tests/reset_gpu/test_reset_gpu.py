"""A GPU is reset only when nothing holds it, and its result is never guessed."""

import asyncio
from datetime import timedelta

import pytest

from activities.pinned_pod import PinnedPods, Trouble
from activities.reset_gpu import GPU_IN_USE, ResetGpuActivities
from fleet.outcome import OutcomeKind
from fleet.reason import INTERRUPTED, PREMISE_GONE
from fleet.step import NodeStepResult, Step
from tests.cluster import conditions, now, pod_manifest, report, request_for, running

GPU = [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]


def resets(cluster, start_limit=timedelta(seconds=20)):
    pods = PinnedPods(cluster.api, "i", now, start_limit=start_limit)
    return ResetGpuActivities(cluster.api, pods).reset_gpu


def answers(cluster, result=NodeStepResult.DONE, **more):
    def on_step(pod):
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        return report(operation, Step.RESET_GPU, result, **more)

    cluster.on_step = on_step


@pytest.mark.parametrize(
    ("result", "kind", "reason"),
    [
        (NodeStepResult.DONE, OutcomeKind.SUCCEEDED, ""),
        (NodeStepResult.FAILED, OutcomeKind.PERMANENT, "reset-gpu-failed"),
        (NodeStepResult.REFUSED, OutcomeKind.PERMANENT, "reset-gpu-refused"),
    ],
)
async def test_r21_what_the_node_says_decides_and_a_refusal_is_no_verdict(
    cluster, temporal, result, kind, reason
):
    node = await cluster.add_node()
    answers(cluster, result, reason="in-use")
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason, outcome.detail) == (kind, reason, "in-use")
    assert outcome.findings == ()


async def test_a_reset_that_another_step_of_ours_kept_away_was_not_tried(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster, NodeStepResult.FAILED, reason="gpu-locked")
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, "gpu-locked")


@pytest.mark.parametrize("ready", [True, False])
async def test_r20_a_pod_that_may_hold_a_gpu_keeps_the_reset_away(cluster, temporal, ready):
    node = await cluster.add_node()
    cluster.stuck.add("b")
    made = await cluster.add_pod(pod_manifest("b", containers=GPU))
    await cluster.set_status(made, running(ready=ready))
    await cluster.raw.delete("/api/v1/namespaces/default/pods/b")
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, GPU_IN_USE)
    assert "default/b" in outcome.detail
    assert cluster.writes() == []


async def test_a_pod_without_a_gpu_does_not_keep_the_reset_away(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    await cluster.add_pod(pod_manifest("web"))
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert outcome.kind is OutcomeKind.SUCCEEDED


async def test_a_reset_of_a_node_that_became_well_does_not_happen(cluster, temporal):
    node = await cluster.add_node(faults=())
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, PREMISE_GONE)
    assert cluster.writes() == []


async def test_r30_a_reset_that_is_taken_up_again_is_found_done(cluster, temporal):
    """The agent has cleared the fault meanwhile; that is the reset's doing and no lost premise."""
    node = await cluster.add_node()
    answers(cluster)
    request = request_for(node, Step.RESET_GPU)
    await temporal.run(resets(cluster), request)
    await cluster.change_node({"status": {"conditions": conditions()}})
    temporal.later_try()
    outcome = await temporal.run(resets(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods("gpumend") == {f"step-{request.operation}"}


async def test_a_reset_that_has_begun_is_seen_to_its_end_whatever_people_say_meanwhile(
    cluster, temporal
):
    """Taken for one that never began, it would be done again by the next step."""
    node = await cluster.add_node()
    answers(cluster)
    request = request_for(node, Step.RESET_GPU)
    await temporal.run(resets(cluster), request)
    pause = {"metadata": {"annotations": {"gpumend.io/pause": "wait"}}}
    await cluster.raw.patch("/api/v1/nodes/n1", pause, "application/merge-patch+json")
    temporal.later_try()
    outcome = await temporal.run(resets(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED


async def test_a_reset_whose_pod_never_started_did_not_happen(quiet_cluster, temporal):
    node = await quiet_cluster.add_node()
    activity = resets(quiet_cluster, timedelta(milliseconds=100))
    outcome = await temporal.run(activity, request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, Trouble.NEVER_STARTED)


async def test_a_reset_whose_end_nobody_saw_is_ambiguous(cluster, temporal):
    node = await cluster.add_node()
    cluster.on_step = lambda pod: ""
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert outcome.kind is OutcomeKind.AMBIGUOUS


async def test_a_reset_that_is_stopped_while_it_runs_is_ambiguous(cluster, temporal):
    node = await cluster.add_node()
    cluster.on_step = lambda pod: None
    task = asyncio.create_task(temporal.run(resets(cluster), request_for(node, Step.RESET_GPU)))
    await temporal.heard("the reset runs")
    temporal.env.cancel()
    outcome = await task
    assert (outcome.kind, outcome.reason) == (OutcomeKind.AMBIGUOUS, INTERRUPTED)
