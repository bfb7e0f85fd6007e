"""What replace, a reboot from outside, end-job and a reset ask of an API server, on both."""

import asyncio
from datetime import timedelta

import pytest

from activities.adapters.kubernetes import connect
from activities.eviction_requests import EvictionRequests
from activities.kubelet import KUBELET_LEASES, kubelet_silent
from activities.look import Sight, see
from activities.no_provider import NoProvider
from activities.node_claims import OPERATION_ANNOTATION
from activities.operands import Operands
from activities.operations import Operations
from activities.out_of_service import ATTACHMENTS, OutOfService
from activities.replace import ReplaceActivities
from activities.replace_ways import ByNodeClaim
from activities.undo import PAUSED_VALUE
from activities.waiting import list_all
from fleet.errors import Conflict, NotFound
from fleet.machine import MachineAddress, Power
from fleet.outcome import OutcomeKind
from fleet.ports import PatchType
from fleet.step import Step
from tests.cluster import Cluster, Temporal, mark, now, request_for
from tests.contract.client import Client
from tests.contract.conftest import unique
from tests.means.karpenter import CLAIMS, add_claim, define_node_claims, terminate

TAINT = "node.kubernetes.io/out-of-service"
PLUGIN = "nvidia.com/gpu.deploy.device-plugin"


class Off(NoProvider):
    """A provider that has switched everything off."""

    async def power(self, machine):
        return Power.OFF


@pytest.fixture
async def running(server, tmp_path):
    config = server.endpoint.write_kubeconfig(tmp_path / "kubeconfig")
    async with connect(str(config)) as api, Client(server.endpoint) as raw:
        for name in ("gpumend", "kube-node-lease"):
            await raw.post("/api/v1/namespaces", {"metadata": {"name": name}})
        yield Cluster(server, api, raw)


@pytest.fixture
async def held(running):
    """A held node of its own for one test."""
    name = unique("gpu")
    node = await running.add_node(name=name, marked=mark(), ready="Unknown")
    yield node
    await running.raw.delete(f"/api/v1/nodes/{name}")


async def test_a_kubelets_lease_is_read_and_its_absence_is_said(running, held):
    name = held.name
    with pytest.raises(NotFound):
        await running.api.get(f"{KUBELET_LEASES}/{name}")
    await running.renew_kubelet_lease(name)
    assert not await kubelet_silent(running.api, await running.node(name), now())
    await running.renew_kubelet_lease(name, now() - timedelta(hours=1))
    assert await kubelet_silent(running.api, await running.node(name), now())
    await running.raw.delete(f"{KUBELET_LEASES}/{name}")


async def test_a_node_is_deleted_by_its_uid_or_not_at_all(running, held):
    path = f"/api/v1/nodes/{held.name}"
    with pytest.raises(Conflict):
        await running.api.delete(path, uid="00000000-0000-0000-0000-000000000000")
    await running.api.delete(path, uid=held.uid)
    with pytest.raises(NotFound):
        await running.api.get(path)


async def test_a_claim_is_marked_as_read_and_deleted_by_its_uid(running, held):
    await define_node_claims(running)
    name = unique("claim")
    made = await add_claim(running, held.name, name)
    path, uid = f"{CLAIMS}/{name}", made["metadata"]["uid"]
    ours = {OPERATION_ANNOTATION: "op"}

    async def say(version):
        guards = {"uid": uid, "resourceVersion": version}
        body = {"metadata": {**guards, "annotations": ours}}
        await running.api.patch(path, body, PatchType.MERGE)

    with pytest.raises(Conflict):
        await say(made["metadata"]["resourceVersion"])  # its status has been written since
    await say((await running.api.get(path))["metadata"]["resourceVersion"])
    with pytest.raises(Conflict):
        await running.api.delete(path, uid="00000000-0000-0000-0000-000000000000")
    await running.api.delete(path, uid=uid)
    await running.api.delete(path, uid=uid)
    query = {"fieldSelector": f"metadata.name={name}"}
    (claim,) = (await list_all(running.api, CLAIMS, query)).objects
    assert "deletionTimestamp" in claim["metadata"]
    assert claim["metadata"]["annotations"] == ours
    await terminate(running, name, held.name)
    with pytest.raises(NotFound):
        await running.api.get(path)


async def test_a_node_of_karpenters_is_replaced(running, held):
    await define_node_claims(running)
    name = unique("claim")
    await add_claim(running, held.name, name)
    request = request_for(held, Step.REPLACE, operation=unique("op"))
    replace = ReplaceActivities(running.api, [ByNodeClaim(running.api, now)]).replace
    temporal = Temporal()
    replacing = asyncio.create_task(temporal.run(replace, request))
    await temporal.heard("takes the machine of NodeClaim")
    await terminate(running, name, held.name)
    assert (await replacing).kind is OutcomeKind.SUCCEEDED


async def test_the_out_of_service_taint_goes_on_and_comes_off_with_its_record(running, held):
    await running.renew_kubelet_lease(held.name, now() - timedelta(hours=1))
    assert (await list_all(running.api, ATTACHMENTS)).objects == ()
    taint = OutOfService(running.api, Operations(Off(), now), now)
    path = f"/api/v1/nodes/{held.name}"
    seen: list[set[str]] = []
    version = (await running.raw.read(path))["metadata"]["resourceVersion"]
    request = request_for(held, Step.REBOOT)
    assert await taint.clean(request, MachineAddress(held.name)) == "its pods and volumes are free"
    query = {"fieldSelector": f"metadata.name={held.name}", "resourceVersion": version}
    async with running.raw.watch("/api/v1/nodes", **query) as nodes:
        while len(seen) < 2:
            _, node = await nodes.next()
            seen.append({each["key"] for each in node["spec"]["taints"]})
    assert [TAINT in each for each in seen] == [True, False]
    assert (await running.node(held.name)).mark == mark()


async def test_labels_of_operands_are_paused_and_given_back(running, held):
    await running.change_node({"metadata": {"labels": {PLUGIN: "true"}}}, held.name)
    operands = Operands(running.api, now)
    request = request_for(held, Step.RESET_GPU)
    sight = await see(running.api, held)
    assert isinstance(sight, Sight)
    assert (await operands.pause(request, sight, [])).kind is OutcomeKind.SUCCEEDED
    assert (await running.node(held.name)).labels[PLUGIN] == PAUSED_VALUE
    assert (await operands.restore(request)).kind is OutcomeKind.SUCCEEDED
    after = await running.node(held.name)
    assert (after.labels[PLUGIN], after.mark) == ("true", mark())


async def test_eviction_requests_are_an_alpha_that_these_servers_do_not_serve(running):
    assert not await EvictionRequests(running.api).served()
