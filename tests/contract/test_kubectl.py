"""What operators do with kubectl, on both servers."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from tests.contract.client import STRATEGIC
from tests.contract.conftest import condition

KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")


@pytest.fixture
def kubectl(server, tmp_path):
    config = server.endpoint.write_kubeconfig(tmp_path / "kubeconfig", kubectl=True)
    assert KUBECTL, "kubectl is missing: uv sync"

    async def run(*arguments, fails=False):
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL),
            f"--kubeconfig={config}",
            f"--cache-dir={tmp_path / 'cache'}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert bool(process.returncode) == fails, (arguments, out, err)
        return (err if fails else out).decode()

    return run


async def test_nodes_are_listed_with_their_status(kubectl, node):
    name = node["metadata"]["name"]
    lines = (await kubectl("get", "nodes", "-l", f"pool={name}")).splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert lines[1].split()[:3] == [name, "Ready", "<none>"]
    await kubectl("cordon", name)
    assert "Ready,SchedulingDisabled" in await kubectl("get", "node", name)
    await kubectl("uncordon", name)
    assert "SchedulingDisabled" not in await kubectl("get", "no", name, "-o", "wide")


async def test_a_hold_is_placed_and_taken_off_by_hand(kubectl, node, api):
    name = node["metadata"]["name"]
    await kubectl("taint", "node", name, "gpumend.io/hold=by-hand:NoSchedule")
    await kubectl("annotate", "node", name, "gpumend.io/pause=looking")
    await kubectl("label", "node", name, "gpumend.io/managed=false")
    found = await api.read(f"/api/v1/nodes/{name}")
    assert found["spec"]["taints"][0]["key"] == "gpumend.io/hold"
    assert found["metadata"]["annotations"]["gpumend.io/pause"] == "looking"
    assert found["metadata"]["labels"]["gpumend.io/managed"] == "false"
    await kubectl("taint", "node", name, "gpumend.io/hold-")
    await kubectl("annotate", "node", name, "gpumend.io/pause-")
    found = await api.read(f"/api/v1/nodes/{name}")
    assert "taints" not in found["spec"]
    assert "gpumend.io/pause" not in found["metadata"].get("annotations", {})


async def test_a_node_is_described_with_its_conditions_and_taints(kubectl, node, api):
    name = node["metadata"]["name"]
    await api.patch(
        f"/api/v1/nodes/{name}/status",
        {"status": {"conditions": [condition("gpumend.io/Memory", "False", "UncontainedMemory")]}},
        STRATEGIC,
    )
    await kubectl("taint", "node", name, "gpumend.io/hold=uncontained-memory:NoSchedule")
    text = await kubectl("describe", "node", name)
    assert "gpumend.io/hold=uncontained-memory:NoSchedule" in text
    assert "UncontainedMemory" in text
    assert "kind: Node" in await kubectl("get", "node", name, "-o", "yaml")


async def test_pods_are_listed_over_namespaces_and_deleted(kubectl, node, api, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeName": node["metadata"]["name"],
    }
    await api.created(path, {"metadata": {"name": "p", "labels": {"app": namespace}}, "spec": spec})
    text = await kubectl("get", "pods", "-A", "-l", f"app={namespace}", "-o", "wide")
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][:6] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1][:5] == [namespace, "p", "0/1", "Pending", "0"]
    assert node["metadata"]["name"] in lines[1]
    await kubectl("delete", "pod", "p", "-n", namespace, "--wait=false")
    text = await kubectl("get", "pod", "p", "-n", namespace)
    assert "Terminating" in text
    await kubectl("delete", "pod", "p", "-n", namespace, "--grace-period=0", "--force")
    assert "NotFound" in await kubectl("get", "pod", "p", "-n", namespace, fails=True)


async def test_events_are_listed(kubectl, api, namespace):
    about = {"kind": "Pod", "name": "p", "namespace": namespace}
    told = {"reason": "Drained", "message": "all pods are gone", "type": "Normal"}
    body = {"metadata": {"name": "e"}, "involvedObject": about, **told}
    await api.created(f"/api/v1/namespaces/{namespace}/events", body)
    lines = (await kubectl("get", "events", "-n", namespace)).splitlines()
    assert lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert lines[1].split()[1:] == ["Normal", "Drained", "pod/p", "all", "pods", "are", "gone"]


async def test_a_condition_can_be_waited_for(kubectl, node, api):
    name = node["metadata"]["name"]
    await kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=20s")


async def test_a_node_is_drained_through_evictions(kubectl, node, api, namespace, server):
    path = f"/api/v1/namespaces/{namespace}/pods"
    name = node["metadata"]["name"]
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": name}
    await api.created(path, {"metadata": {"name": "p"}, "spec": spec})
    await api.patch(f"{path}/p/status", {"status": {"phase": "Running"}})
    async with api.watch(path) as watch:
        drain = asyncio.create_task(kubectl("drain", name, "--force", "--timeout=20s"))
        while "deletionTimestamp" not in (await watch.until("MODIFIED", "p"))["metadata"]:
            pass
        await api.delete(f"{path}/p", {"gracePeriodSeconds": 0})
        await drain
    assert "SchedulingDisabled" in await kubectl("get", "node", name)
