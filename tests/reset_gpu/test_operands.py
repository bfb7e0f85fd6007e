"""What holds a GPU on behalf of the node leaves for a reset, and is back on every way out."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from activities.close import CloseActivities
from activities.look import Sight, see
from activities.operands import CANNOT_RETURN, Operands, judge_restore
from activities.pinned_pod import PinnedPods
from activities.release import undo_patch
from activities.reset_gpu import GPU_IN_USE, ResetGpuActivities
from activities.undo import PAUSED_VALUE, label_entry
from activities.verify import VerifyActivities
from fleet.mark import UNDO_CORDON, UNDO_TAINT
from fleet.outcome import OutcomeKind
from fleet.step import NodeStepResult, Step
from tests.cluster import identity, mark, now, pod_manifest, report, request_for, seen_node
from tests.contract.client import MERGE

PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
DRIVER = "nvidia.com/gpu.deploy.driver"
ANYTHING = [{"operator": "Exists"}]
PAUSED = mark(undo=(UNDO_TAINT, label_entry(PLUGIN, "true")))


def resets(cluster, limit=timedelta(seconds=10)):
    pods = PinnedPods(cluster.api, "i", now)
    operands = Operands(cluster.api, now, limit=limit)
    return ResetGpuActivities(cluster.api, pods, operands=operands).reset_gpu


def answers(cluster, result=NodeStepResult.DONE, reason=""):
    seen = []

    def on_step(pod):
        labels = pod["metadata"]["labels"]
        seen.append(labels["gpumend.io/operation"])
        return report(labels["gpumend.io/operation"], Step.RESET_GPU, result, reason=reason)

    cluster.on_step = on_step
    return seen


async def operator(cluster, tolerations=ANYTHING):
    """A node under the GPU Operator, with its device plugin running."""
    node = await cluster.add_node()
    await cluster.change_node(labels(**{PLUGIN: "true", DRIVER: "true"}))
    plugin = pod_manifest(
        "plugin",
        owner="DaemonSet",
        runtimeClassName="nvidia",
        nodeSelector={PLUGIN: "true"},
        tolerations=tolerations,
    )
    await cluster.add_pod(plugin)
    return node


def labels(**values):
    return {"metadata": {"labels": values}}


@asynccontextmanager
async def daemon_sets(cluster):
    """Takes the plugin off a node whose label no longer asks for it."""

    async def follow():
        async with cluster.raw.watch("/api/v1/nodes", resourceVersion="0") as nodes:
            while True:
                node = await nodes.until("MODIFIED", "n1")
                if node["metadata"]["labels"].get(PLUGIN) == PAUSED_VALUE:
                    await cluster.raw.delete("/api/v1/namespaces/default/pods/plugin")

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("result", "reason", "pods"),
    [
        (NodeStepResult.DONE, "", 1),
        (NodeStepResult.FAILED, "tool-failed", 1),
        (NodeStepResult.FAILED, "in-use", 2),
        (NodeStepResult.REFUSED, "too-late", 1),
    ],
)
async def test_r21_operands_leave_for_a_reset_and_are_back_however_it_ends(
    cluster, temporal, result, reason, pods
):
    node = await operator(cluster)
    seen = answers(cluster, result, reason)
    async with daemon_sets(cluster):
        outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind is OutcomeKind.SUCCEEDED) is (result is NodeStepResult.DONE)
    assert len(seen) == pods
    after = await cluster.node()
    assert (after.labels[PLUGIN], after.labels[DRIVER]) == ("true", "true")
    assert after.mark.undo == (UNDO_TAINT,)
    assert "plugin" not in await cluster.pods()
    order = [
        each["requestURI"] for each in cluster.writes() if each["responseStatus"]["code"] < 400
    ]
    assert "/nodes/n1" in order[0]
    assert "/pods" in order[1]
    assert "/nodes/n1" in order[-1]


async def test_r21_operands_that_stay_keep_the_reset_away_and_keep_their_labels(cluster, temporal):
    node = await operator(cluster)
    outcome = await temporal.run(
        resets(cluster, timedelta(milliseconds=100)), request_for(node, Step.RESET_GPU)
    )
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, GPU_IN_USE)
    assert "plugin" in outcome.detail
    assert (await cluster.node()).labels[PLUGIN] == "true"
    assert await cluster.pods("gpumend") == set()


async def test_r21_a_crash_after_the_pause_is_mended_by_the_next_try(cluster, temporal):
    node = await operator(cluster)
    answers(cluster)
    request = request_for(node, Step.RESET_GPU)
    async with daemon_sets(cluster):
        sight = await see(cluster.api, node)
        assert isinstance(sight, Sight)
        paused = await Operands(cluster.api, now).pause(request, sight, [])
        assert paused.kind is OutcomeKind.SUCCEEDED
        assert (await cluster.node()).labels[PLUGIN] == PAUSED_VALUE
        assert (await temporal.run(resets(cluster), request)).kind is OutcomeKind.SUCCEEDED
    assert (await cluster.node()).labels[PLUGIN] == "true"
    assert (await cluster.node()).mark.undo == (UNDO_TAINT,)


async def test_r21_a_verify_gives_back_what_a_lost_reset_left_paused(cluster, temporal):
    node = await cluster.add_node(marked=PAUSED)
    await cluster.change_node(labels(**{PLUGIN: PAUSED_VALUE}))
    cluster.on_step = lambda pod: ""
    verify = VerifyActivities(cluster.api, PinnedPods(cluster.api, "i", now)).verify
    await temporal.run(verify, request_for(node, Step.VERIFY))
    assert (await cluster.node()).labels[PLUGIN] == "true"
    assert (await cluster.node()).mark.undo == (UNDO_TAINT,)


async def test_a_close_leaves_nothing_of_ours(cluster, temporal):
    """A person took the hold off; the mark still says what else is to be undone."""
    node = await cluster.add_node(marked=PAUSED, taints=[])
    await cluster.change_node(labels(**{PLUGIN: PAUSED_VALUE}))
    close = CloseActivities(cluster.api).close
    assert (await temporal.run(close, request_for(node, Step.CLOSE))).kind is OutcomeKind.SUCCEEDED
    assert (await cluster.node()).labels[PLUGIN] == "true"
    assert (await cluster.node()).mark is None


def test_a_release_gives_back_what_is_paused_and_leaves_what_somebody_changed():
    manifest, node = seen_node(marked=PAUSED)
    manifest["metadata"]["labels"] = {PLUGIN: PAUSED_VALUE}
    assert undo_patch(manifest, PAUSED)["metadata"]["labels"] == {PLUGIN: "true"}
    manifest["metadata"]["labels"] = {PLUGIN: "false"}
    assert "labels" not in undo_patch(manifest, PAUSED)["metadata"]
    patch = judge_restore(manifest, node, request_for(identity(), Step.RESET_GPU))
    assert isinstance(patch, dict)
    assert "labels" not in patch["metadata"]


async def test_where_an_operand_could_not_return_the_hold_becomes_a_cordon(cluster, temporal):
    node = await operator(cluster, tolerations=[])
    answers(cluster)
    async with daemon_sets(cluster):
        outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    after = await cluster.node()
    assert (after.hold, after.unschedulable) == (None, True)
    assert after.mark.undo == (UNDO_CORDON,)
    assert undo_patch({"metadata": {}, "spec": {}}, after.mark)["spec"] == {"unschedulable": None}


async def test_r22_a_foreign_cordon_is_never_made_ours(cluster, temporal):
    node = await operator(cluster, tolerations=[])
    await cluster.raw.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}}, MERGE)
    outcome = await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, CANNOT_RETURN)
    after = await cluster.node()
    assert after.labels[PLUGIN] == "true"
    assert after.mark.undo == (UNDO_TAINT,)
    assert cluster.writes() == []


async def test_a_node_without_the_operator_is_left_as_it_is(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    await temporal.run(resets(cluster), request_for(node, Step.RESET_GPU))
    assert cluster.writes(path="/nodes/") == []
