"""A step is killed at its calls, before and after they take effect; the next try finds what was
done, and does the rest once.
"""

import asyncio
import warnings
from dataclasses import dataclass
from multiprocessing import get_context

import pytest
from temporalio.testing import ActivityEnvironment

from fleet.mark import UNDO_TAINT
from fleet.outcome import OutcomeKind
from fleet.proof import Why
from fleet.proving import ProofEnd
from fleet.step import NodeStepResult, Step
from tests.cluster import LOST, report, request_for
from tests.killed.step import child, run
from tests.means.karpenter import CLAIMS, add_claim, define_node_claims, terminate
from tests.provider.machines import provider_in
from tests.proving.nodes import OK, a_request, serving, unproven
from tests.reset_gpu.test_operands import PLUGIN, daemon_sets, operator

NODE = r"^/api/v1/nodes/n1$"
CLAIM = rf"^{CLAIMS}/claim-1$"
PODS = r"^/api/v1/namespaces/gpumend/pods$"


@dataclass(frozen=True)
class Wire:
    """The call at which the process is killed."""

    verb: str
    path: str
    body: str = ""
    after: bool = False


async def killed_at(cluster, wire, url, request, tmp_path):
    """Run the step in a process and kill it while this call is held."""
    body = {"verb": wire.verb, "path": wire.path, "body": wire.body, "after": wire.after}
    laid = asyncio.create_task(cluster.raw.post("/sim/tripwires", body))
    about = (str(tmp_path / "kubeconfig"), url, request)
    process = get_context("fork").Process(target=child, args=about, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is killed: no lock of ours matters
        process.start()
    try:
        assert (await laid).status_code == 200
    finally:
        process.kill()
        process.join()
        await cluster.raw.post("/sim/release", {})


def done(cluster, **which):
    """How often the calls took effect."""
    return sum(each["responseStatus"]["code"] < 300 for each in cluster.writes(**which))


@pytest.mark.parametrize(
    "wire",
    [Wire("patch", CLAIM, after=True), Wire("delete", CLAIM), Wire("delete", CLAIM, after=True)],
    ids=["said and not deleted", "deletion lost", "deleted"],
)
async def test_r30_a_replace_by_node_claim(cluster, temporal, tmp_path, wire):
    await define_node_claims(cluster)
    node = await cluster.add_node()
    await add_claim(cluster)
    request = request_for(node, Step.REPLACE)
    await killed_at(cluster, wire, "http://127.0.0.1:9", request, tmp_path)
    temporal.later_try()
    config = str(tmp_path / "kubeconfig")
    async with provider_in(tmp_path, cluster) as server:
        again = asyncio.create_task(run(config, server.server.url, request, temporal.env))
        await temporal.heard("takes the machine of NodeClaim")
        await terminate(cluster)
        assert (await again).kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == []
    assert done(cluster, verb="patch", path=CLAIMS) == 1
    assert done(cluster, verb="delete", path=CLAIMS) == 1


@pytest.mark.parametrize(
    "wire",
    [
        Wire("patch", NODE, "out-of-service.*NoExecute", after=True),
        Wire("patch", NODE, r"undo[^]]*\[\\\"taint\\\"\]", after=True),
    ],
    ids=["the taint on", "the taint off again"],
)
async def test_r30_a_stop_and_start(quiet_cluster, temporal, tmp_path, wire):
    node = await quiet_cluster.add_node(faults=(), ready="Unknown")
    request = request_for(node, Step.REBOOT, faults=(LOST,))
    async with provider_in(tmp_path, quiet_cluster, ("stop", "start")) as server:
        url = server.server.url
        await killed_at(quiet_cluster, wire, url, request, tmp_path)
        assert server.machines.asked == ["stop"]
        temporal.later_try()
        outcome = await run(str(tmp_path / "kubeconfig"), url, request, temporal.env)
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["stop", "start"]
    after = await quiet_cluster.raw.read("/api/v1/nodes/n1")
    assert [each["key"] for each in after["spec"]["taints"]] == ["gpumend.io/hold"]
    assert (await quiet_cluster.node()).mark.undo == (UNDO_TAINT,)


@pytest.mark.parametrize(
    "wire",
    [Wire("patch", NODE, "paused-by", after=True), Wire("create", PODS, after=True)],
    ids=["operands paused", "the reset's Pod made"],
)
async def test_r30_a_reset(cluster, temporal, tmp_path, wire):
    node = await operator(cluster)
    request = request_for(node, Step.RESET_GPU)

    def on_step(pod):
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        return report(operation, Step.RESET_GPU, NodeStepResult.DONE)

    cluster.on_step = on_step
    async with daemon_sets(cluster):
        await killed_at(cluster, wire, "http://127.0.0.1:9", request, tmp_path)
        temporal.later_try()
        config = str(tmp_path / "kubeconfig")
        outcome = await run(config, "http://127.0.0.1:9", request, temporal.env)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert done(cluster, verb="create", path="/gpumend/pods") == 1
    after = await cluster.node()
    assert (after.labels[PLUGIN], after.mark.undo) == ("true", (UNDO_TAINT,))


async def test_a_proof_that_is_killed_changes_its_node_once(cluster, tmp_path):
    cases = [
        ("prove-taint", Why.SWEEP, ProofEnd.UNKNOWN, serving()),
        ("prove-end", Why.JOINED, ProofEnd.PROVEN, unproven()),
        ("prove-end", Why.SWEEP, ProofEnd.FOUND, unproven(Why.SWEEP)),
    ]
    config = str(tmp_path / "kubeconfig")
    for number, (name, why, end, about) in enumerate(cases):
        for after in (False, True):
            node = f"n{number}-{after}".lower()
            found = await cluster.add_node(name=node, provider_id=f"c:///{node}", **about)
            request = a_request(found, why, end, operation=name)
            wire = Wire("patch", rf"^/api/v1/nodes/{node}$", after=after)
            await killed_at(cluster, wire, "http://nobody", request, tmp_path)
            outcome = await run(config, "http://nobody", request, ActivityEnvironment())
            assert outcome.kind is OutcomeKind.SUCCEEDED, (name, after)
            assert done(cluster, verb="patch", path=f"/nodes/{node}") == 1


@pytest.mark.parametrize("after", [False, True])
async def test_a_proof_that_is_killed_runs_its_checks_once(cluster, tmp_path, after):
    node = await cluster.add_node(**unproven())
    request = a_request(node, operation="prove")
    cluster.on_step = lambda _: report("prove", Step.VERIFY, findings=(OK,))
    await killed_at(cluster, Wire("create", PODS, after=after), "http://nobody", request, tmp_path)
    config = str(tmp_path / "kubeconfig")
    outcome = await run(config, "http://nobody", request, ActivityEnvironment())
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert done(cluster, verb="create", path="/pods") == 1
