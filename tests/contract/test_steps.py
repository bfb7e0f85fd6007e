"""Every step of a repair, by the production activities, on both servers."""

import asyncio
from datetime import timedelta

import pytest

from activities.adapters.kubernetes import connect
from activities.close import CloseActivities
from activities.drain import DrainActivities
from activities.hold import HoldActivities
from activities.no_provider import NoProvider
from activities.operations import Operations
from activities.pinned_pod import PinnedPods
from activities.reboot import RebootActivities
from activities.reboot_means import FromInside
from activities.release import ReleaseActivities
from activities.reset_gpu import ResetGpuActivities
from activities.verify import VerifyActivities
from fleet.finding import Finding, Verdict
from fleet.mark import MarkState
from fleet.names import MARK_ANNOTATION, NAMESPACE
from fleet.outcome import OutcomeKind
from fleet.part import Part
from fleet.step import Step
from tests.cluster import (
    BOOT,
    Cluster,
    Temporal,
    conditions,
    mark,
    now,
    pod_manifest,
    report,
    request_for,
)
from tests.contract.client import Client
from tests.contract.conftest import unique

BOOTED = "boot-2"


async def nobody_lent(incident: str) -> None:
    raise AssertionError(f"{incident} had no lease to give back")


@pytest.fixture
async def running(server, tmp_path):
    """A cluster on this server with a kubelet, and what the Pods of our steps need."""
    config = server.endpoint.write_kubeconfig(tmp_path / "kubeconfig")
    async with connect(str(config)) as api, Client(server.endpoint) as raw:
        await raw.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for namespace in ("default", NAMESPACE):
            account = {"metadata": {"name": "default"}}
            await raw.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        cluster = Cluster(server, api, raw)
        kubelet = asyncio.create_task(cluster.run_kubelet())
        yield cluster
        kubelet.cancel()
        await asyncio.gather(kubelet, return_exceptions=True)


async def test_a_node_goes_through_every_step_and_comes_back_as_it_was(running):
    name = unique("gpu")
    node = await running.add_node(name=name, marked=mark(MarkState.PENDING))
    for pod in (unique("job"), unique("job")):
        await running.add_pod(pod_manifest(pod, name))
    operations = iter(range(10))

    async def step(activity, kind, boot_id=BOOT):
        request = request_for(node, kind, boot_id=boot_id, operation=f"{name}-{next(operations)}")
        outcome = await Temporal().run(activity, request)
        assert outcome.kind is OutcomeKind.SUCCEEDED, outcome
        return outcome

    def answer(pod):
        labels = pod["metadata"]["labels"]
        kind = Step(labels["gpumend.io/step"])
        boot_id = BOOTED if kind is Step.VERIFY else BOOT
        found = (Finding("pci", Part("gpu:3"), Verdict.OK),) if kind is Step.VERIFY else ()
        return report(labels["gpumend.io/operation"], kind, boot=boot_id, findings=found)

    async def boot(pod):
        if pod["metadata"]["labels"]["gpumend.io/step"] == Step.REBOOT:
            status = {"nodeInfo": {"bootID": BOOTED}, "conditions": conditions(boot=BOOTED)}
            await running.change_node({"status": status}, name)

    running.on_step, running.after_step = answer, boot
    api, pods = running.api, PinnedPods(running.api, "image", now)
    quick = timedelta(milliseconds=100)
    await step(HoldActivities(api).hold, Step.HOLD)
    await step(DrainActivities(api, settle=quick).drain, Step.DRAIN)
    await step(ResetGpuActivities(api, pods).reset_gpu, Step.RESET_GPU)
    rebooted = await step(
        RebootActivities(api, [FromInside(pods)], Operations(NoProvider(), now)).reboot, Step.REBOOT
    )
    assert rebooted.boot_id == BOOTED
    await step(VerifyActivities(api, pods).verify, Step.VERIFY, BOOTED)
    await step(ReleaseActivities(api, nobody_lent).release, Step.RELEASE, BOOTED)
    await step(CloseActivities(api).close, Step.CLOSE, BOOTED)
    manifest = await running.raw.read(f"/api/v1/nodes/{name}")
    assert "taints" not in manifest["spec"]
    assert MARK_ANNOTATION not in manifest["metadata"].get("annotations", {})
    await running.raw.delete(f"/api/v1/nodes/{name}")
