"""deploy/agent-rbac.yaml: an agent writes its own Node's gpumend.io/* conditions, nothing else."""

from pathlib import Path

import pytest
import yaml

from fleet.names import agent_lease
from tests.contract.client import STRATEGIC, Client, eventually, refusal
from tests.contract.conftest import condition, unique

MANIFEST = Path(__file__).parents[2] / "deploy" / "agent-rbac.yaml"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpumend/leases"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/gpumend/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/gpumend/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/gpumend/rolebindings",
    "ValidatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
}
GPU = condition("gpumend.io/GPU", "True")


@pytest.fixture
async def agent(api, server, node):
    """A client with the token of an agent's pod on `node`, once the fence stands."""
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        answer = await api.post(PATHS[document["kind"]], document)
        assert answer.status_code in (201, 409), answer.text
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node["metadata"]["name"]}
    spec["serviceAccountName"] = "gpumend-agent"
    pods = "/api/v1/namespaces/gpumend/pods"
    pod = await api.created(pods, {"metadata": {"generateName": "agent-"}, "spec": spec})
    reference = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"]}
    path = f"{PATHS['ServiceAccount']}/gpumend-agent/token"
    made = await api.created(path, {"spec": {"boundObjectRef": reference}})
    async with Client(server.endpoint, made["status"]["token"]) as client:
        change = {"metadata": {"labels": {"fence": "probe"}}}
        await eventually(lambda: client.patch(path_of(node), change, dryRun="All"), 403)
        await eventually(lambda: client.patch(path_of(node), {}), 200)
        await eventually(lambda: client.patch(path_of(node), change, dryRun="All"), 403)
        yield client
    await api.delete(f"{pods}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})


def path_of(node):
    return f"/api/v1/nodes/{node['metadata']['name']}/status"


def denial(answer):
    code, reason = refusal(answer)
    assert (code, reason) == (403, "Forbidden"), answer.text
    head, _, why = answer.json()["message"].partition(" denied request: ")
    assert head.endswith(
        "ValidatingAdmissionPolicy 'gpumend-agent' with binding 'gpumend-agent'"
    ), head
    return why


async def conditions(client, node, *found):
    return await client.patch(path_of(node), {"status": {"conditions": list(found)}}, STRATEGIC)


async def test_an_agent_writes_its_own_conditions(agent, node):
    assert (await conditions(agent, node, GPU)).status_code == 200
    changed = {**GPU, "status": "False"}
    assert (await conditions(agent, node, changed)).status_code == 200


async def test_an_agent_writes_no_other_node(agent, node, api):
    other = await api.created("/api/v1/nodes", {"metadata": {"name": unique("other")}})
    assert denial(await conditions(agent, other, GPU)) == "an agent may write its own Node only"
    await api.delete(f"/api/v1/nodes/{other['metadata']['name']}")


async def test_an_agent_writes_no_condition_of_others(agent, node):
    why = "an agent may change gpumend.io/* conditions only"
    assert denial(await conditions(agent, node, condition("Ready", "False"))) == why
    gone = {"$patch": "delete", "type": "Ready"}
    assert denial(await conditions(agent, node, gone)) == why
    assert denial(await conditions(agent, node, condition("example.org/X", "True"))) == why


@pytest.mark.parametrize(
    "meta",
    [
        {"labels": {"x": "1"}},
        {"labels": None},
        {"annotations": {"gpumend.io/incident": "{}"}},
        {"finalizers": ["example.org/x"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    ],
    ids=lambda meta: "-".join(meta),
)
async def test_an_agent_changes_no_metadata(agent, node, meta):
    answer = await agent.patch(path_of(node), {"metadata": meta})
    why = "an agent may not change labels, annotations, finalizers or owners"
    assert denial(answer) == why


@pytest.mark.parametrize(
    "status",
    [
        {"capacity": {"nvidia.com/gpu": "8"}},
        {"allocatable": {"nvidia.com/gpu": "0"}},
        {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
        {"nodeInfo": {"bootID": "other"}},
    ],
    ids=lambda status: "-".join(status),
)
async def test_an_agent_does_not_change_what_the_node_offers(agent, node, status):
    answer = await agent.patch(path_of(node), {"status": status})
    assert denial(answer) == "an agent may not change what the Node is or offers"


async def test_an_agent_can_not_reach_the_spec(agent, node):
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    assert refusal(await agent.patch(path, {"spec": {"unschedulable": True}})) == (
        403,
        "Forbidden",
    )
    assert refusal(await agent.get("/api/v1/nodes")) == (403, "Forbidden")


async def test_an_agent_renews_its_own_lease_and_no_other(agent, node, api):
    name = agent_lease(node["metadata"]["name"])
    made = await agent.post(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
    assert made.status_code == 201, made.text
    renewed = {"spec": {"renewTime": "2026-11-29T12:00:00.000000Z"}}
    assert (await agent.patch(f"{LEASES}/{name}", renewed)).status_code == 200
    why = "an agent may write its own Lease only"
    other = agent_lease(unique("other"))
    answer = await agent.post(LEASES, {"metadata": {"name": other}, "spec": {}})
    assert denial(answer) == why
    await api.created(LEASES, {"metadata": {"name": other}})
    assert denial(await agent.patch(f"{LEASES}/{other}", renewed)) == why
    for found in (name, other):
        await api.delete(f"{LEASES}/{found}")


async def test_the_fence_keeps_nobody_else_out(agent, node, api):
    answer = await api.patch(path_of(node), {"metadata": {"labels": {"x": "1"}}})
    assert answer.status_code == 200
