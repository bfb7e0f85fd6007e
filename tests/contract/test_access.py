"""Who may do what: tokens, roles, tokens bound to a pod."""

import pytest

from tests.contract.client import STRATEGIC, Client, eventually, refusal
from tests.contract.conftest import condition, unique

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Account:
    """A service account of a test, its rights and its tokens."""

    def __init__(self, api, server, namespace, name):
        self.api = api
        self.server = server
        self.namespace = namespace
        self.name = name
        self.user = f"system:serviceaccount:{namespace}:{name}"

    async def may(self, *rules):
        name = unique("role")
        await self.api.created(
            f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)}
        )
        subject = {"kind": "ServiceAccount", "namespace": self.namespace, "name": self.name}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        await self.api.created(
            f"{RBAC}/clusterrolebindings",
            {"metadata": {"name": name}, "subjects": [subject], "roleRef": role},
        )

    async def token(self, pod=None):
        spec: dict[str, object] = {"expirationSeconds": 600}
        if pod:
            meta = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": meta["name"],
                "uid": meta["uid"],
            }
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}/token"
        made = await self.api.created(path, {"spec": spec})
        return made["status"]["token"]

    def client(self, token):
        return Client(self.server.endpoint, token)


@pytest.fixture
async def account(api, server, namespace):
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.created(path, {"metadata": {"name": "agent"}})
    return Account(api, server, namespace, "agent")


def rule(verbs, resources, group=""):
    return {"verbs": verbs, "resources": resources, "apiGroups": [group]}


async def test_a_wrong_token_is_unauthorized(server):
    async with Client(server.endpoint, "nonsense") as stranger:
        assert refusal(await stranger.get("/api/v1/nodes")) == (401, "Unauthorized")


async def test_without_a_token_nothing_but_health_and_version_is_seen(server):
    async with Client(server.endpoint) as anonymous:
        anonymous._http.headers.pop("Authorization")
        assert refusal(await anonymous.get("/api/v1/nodes")) == (403, "Forbidden")
        for path in ("/readyz", "/livez", "/healthz", "/version"):
            assert (await anonymous.get(path)).status_code == 200


async def test_what_no_role_allows_is_forbidden(account):
    async with account.client(await account.token()) as agent:
        answer = await agent.get("/api/v1/nodes")
        assert refusal(answer) == (403, "Forbidden")
        assert answer.json()["message"] == (
            f'nodes is forbidden: User "{account.user}" cannot list resource "nodes" '
            'in API group "" at the cluster scope'
        )
        answer = await agent.post(
            f"/apis/coordination.k8s.io/v1/namespaces/{account.namespace}/leases",
            {"metadata": {"name": "a"}},
        )
        assert answer.json()["message"] == (
            f'leases.coordination.k8s.io is forbidden: User "{account.user}" cannot create '
            f'resource "leases" in API group "coordination.k8s.io" in the namespace '
            f'"{account.namespace}"'
        )


async def test_a_role_allows_what_it_names_and_no_more(account, node):
    await account.may(rule(["get"], ["nodes"]), rule(["patch"], ["nodes/status"]))
    path = f"/api/v1/nodes/{node['metadata']['name']}"
    async with account.client(await account.token()) as agent:
        await eventually(lambda: agent.get(path), 200)
        assert refusal(await agent.get("/api/v1/nodes")) == (403, "Forbidden")
        assert refusal(await agent.patch(path, {})) == (403, "Forbidden")
        answer = await agent.patch(f"{path}/status", {"status": {"phase": ""}})
        assert answer.status_code == 200


async def test_a_strategic_status_patch_needs_nothing_beyond_patch_here(account, node):
    await account.may(rule(["patch"], ["nodes/status"]))
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    body = {"status": {"conditions": [condition("gpumend.io/GPU", "True")]}}
    async with account.client(await account.token()) as agent:
        await eventually(lambda: agent.patch(path, body, STRATEGIC), 200)


async def test_a_token_may_be_bound_to_a_pod(account, api, node):
    await account.may(rule(["get"], ["nodes"]))
    path = f"/api/v1/namespaces/{account.namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node["metadata"]["name"]}
    spec["serviceAccountName"] = account.name
    pod = await api.created(path, {"metadata": {"name": "p"}, "spec": spec})
    where = f"/api/v1/nodes/{node['metadata']['name']}"
    async with account.client(await account.token(pod)) as agent:
        await eventually(lambda: agent.get(where), 200)


async def test_a_token_for_a_pod_that_is_gone_is_refused(account):
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "none"}
    answer = await account.api.post(path, {"spec": {"boundObjectRef": reference}})
    assert refusal(answer) == (404, "NotFound")


async def test_discovery_names_what_is_served(api):
    core = await api.read("/api/v1")
    found = {r["name"]: r for r in core["resources"]}
    assert found["nodes"]["kind"] == "Node"
    assert found["nodes"]["namespaced"] is False
    assert "no" in found["nodes"]["shortNames"]
    assert {"nodes/status", "pods/eviction", "pods/status"} <= found.keys()
    groups = {g["name"] for g in (await api.read("/apis"))["groups"]}
    assert {"coordination.k8s.io", "policy", "rbac.authorization.k8s.io"} <= groups
    leases = await api.read("/apis/coordination.k8s.io/v1")
    assert "leases" in {r["name"] for r in leases["resources"]}
    assert (await api.read("/version"))["major"] == "1"


async def test_a_method_that_makes_no_sense_is_refused(api, node):
    answer = await api.raw("POST", f"/api/v1/nodes/{node['metadata']['name']}", json={})
    assert refusal(answer) == (405, "MethodNotAllowed")


AUTHORIZATION = "/apis/authorization.k8s.io/v1"


def wanted(verb, resource, **more):
    return {"resourceAttributes": {"verb": verb, "resource": resource, **more}}


async def allowed(client, spec, kind="selfsubjectaccessreviews"):
    made = await client.created(f"{AUTHORIZATION}/{kind}", {"spec": spec})
    return made["status"]["allowed"]


async def test_who_is_known_may_ask_what_they_may_do(account):
    await account.may(rule(["get"], ["nodes", "nodes/status"]))
    async with account.client(await account.token()) as agent:
        await eventually(lambda: agent.get("/api/v1/nodes/nobody"), 404)
        assert await allowed(agent, wanted("get", "nodes"))
        assert await allowed(agent, wanted("get", "nodes", subresource="status", name="n1"))
        assert not await allowed(agent, wanted("patch", "nodes"))
        assert not await allowed(agent, wanted("get", "leases", group="coordination.k8s.io"))
        assert not await allowed(agent, wanted("create", "nowhere", group="example.com"))


async def test_only_who_may_ask_about_others_is_told(account, api):
    await account.may(rule(["get"], ["nodes"]))
    about = {"user": account.user, **wanted("get", "nodes")}
    async with account.client(await account.token()) as agent:
        await eventually(lambda: agent.get("/api/v1/nodes/nobody"), 404)
        answer = await agent.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": about})
        assert refusal(answer) == (403, "Forbidden")
    assert await allowed(api, about, "subjectaccessreviews")
    denied = {**about, **wanted("delete", "nodes")}
    assert not await allowed(api, denied, "subjectaccessreviews")


async def test_everybody_is_told_who_they_are(account):
    async with account.client(await account.token()) as agent:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        made = await agent.created(path, {})
        assert made["status"]["userInfo"]["username"] == account.user


async def test_a_review_that_asks_nothing_is_invalid(api):
    answer = await api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {}})
    assert refusal(answer) == (422, "Invalid")
    assert (await api.get(f"{AUTHORIZATION}/selfsubjectaccessreviews")).status_code == 405
