"""A kernel line of one of two jobs' processes ends just that job: the machine, the real agent, the
API server and the step, nothing in between made up."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activities.end_job import EndJobActivities
from console.node_facts import facts_of
from console.show import View, as_text
from fleet.fault import FaultName
from fleet.node import read_node
from fleet.outcome import OutcomeKind
from fleet.step import Step
from policies.document import default_policy
from policies.signals import read_report
from probes.agent import run
from probes.agent.api import ApiServer
from probes.agent.publish import Publisher
from probes.agent.run import Agent, start
from probes.machine import machine as probed
from simulator.hardware.machine import Machine
from simulator.hardware.nature import APPLICATION, CONTAINED_MEMORY
from tests.cluster import now, pod_manifest, request_for

LABELS = ("gpumend.io/job",)
PATIENCE = 30.0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch) -> Machine:
    monkeypatch.setenv("GPUMEND_HOST_EXEC", "")
    monkeypatch.setattr(run, "TICK", 0.05)
    monkeypatch.setattr("probes.agent.pace.PATCH_PERIOD", 0.02)
    return Machine.create(tmp_path / "machine", "n1", gpus=2)


@pytest.fixture
def agent(machine, cluster, tmp_path: Path) -> Iterator[Agent]:
    token = tmp_path / "token"
    token.write_text(cluster.server.endpoint.tokens["admin"])
    server = ApiServer(cluster.server.endpoint.url, token, cluster.server.endpoint.ca)
    publisher = Publisher(server, "n1", lambda: datetime.now(UTC))
    agent = start(probed(str(machine.root), None, ""), "n1", b"", publisher)
    yield agent
    agent.stop.set()


async def rank(cluster, machine, job, gpu):
    """A pod of a job that has a GPU open."""
    gpus = [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    manifest = pod_manifest(f"{job}-0", containers=gpus)
    manifest["metadata"]["labels"] |= {"gpumend.io/job": job}
    uid = (await cluster.add_pod(manifest))["metadata"]["uid"]
    machine.hold(uid, (gpu,))
    return uid


async def faults_with_pods(cluster):
    """What the node's conditions say is wrong with it, as soon as they say whom it hit."""
    async with (
        asyncio.timeout(PATIENCE),
        cluster.raw.watch("/api/v1/nodes", resourceVersion="0") as nodes,
    ):
        while True:
            _, manifest = await nodes.next()
            state = read_node(manifest, "c1")
            found = read_report(state, default_policy(), now(), agent_silent=False).faults
            if any(each.pods for each in found):
                return found


async def test_an_error_in_one_of_two_jobs_ends_just_that_job(cluster, machine, agent, temporal):
    node = await cluster.add_node(faults=(), boot=machine.boot_id)
    (a, b) = [await rank(cluster, machine, job, gpu) for gpu, job in enumerate("ab")]
    thread = threading.Thread(target=agent.run)
    thread.start()
    try:
        machine.strike(0, APPLICATION)
        machine.strike(1, CONTAINED_MEMORY)
        found = await faults_with_pods(cluster)
    finally:
        agent.stop.set()
        await asyncio.to_thread(thread.join)
    assert [(each.name, each.pods) for each in found] == [(FaultName.CONTAINED_MEMORY, (b,))]
    jobs_own = {(each.code, each.pod) for each in agent.core.applications.counts}
    assert jobs_own == {("xid:31", a), ("xid:43", a)}

    shown = await show(cluster)
    assert "it hit default/b-0" in shown
    assert a not in shown

    end = EndJobActivities(cluster.api, settle=timedelta(milliseconds=50)).end_job
    request = request_for(
        node, Step.END_JOB, boot_id=machine.boot_id, faults=found, job_labels=LABELS
    )
    assert (await temporal.run(end, request)).kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"a-0"}
    assert f"it hit pod {b}" in await show(cluster)


async def show(cluster):
    """As `gpumend show` words the node."""
    manifest = await cluster.raw.read("/api/v1/nodes/n1")
    return "\n".join(as_text(View("n1", "c1", now(), await facts_of(cluster.api, manifest, "c1"))))
