"""The production client on both servers: each refusal arrives as the error that it means."""

import pytest

from activities.adapters.kubernetes import connect
from fleet.errors import Conflict, Expired, NotFound, Refused, TooManyRequests
from fleet.ports import PatchType
from tests.contract.conftest import unique

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def client(server, tmp_path):
    config = server.endpoint.write_kubeconfig(tmp_path / "kubeconfig")
    async with connect(str(config)) as running:
        yield running


async def made(client, **labels):
    body = {"metadata": {"name": unique("map"), "labels": labels}, "data": {"k": "v"}}
    return await client.create(MAPS, body)


def path_of(thing):
    return f"{MAPS}/{thing['metadata']['name']}"


async def test_an_object_is_made_read_changed_and_deleted(client):
    thing = await made(client)
    await client.patch(path_of(thing), {"data": {"k": "w"}}, PatchType.MERGE)
    assert (await client.get(path_of(thing)))["data"] == {"k": "w"}
    await client.delete(path_of(thing), uid=thing["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.get(path_of(thing))


async def test_an_object_is_followed_from_the_version_in_which_it_was_made_or_changed(client):
    thing = await made(client)
    name = {"fieldSelector": f"metadata.name={thing['metadata']['name']}"}
    changed = await client.patch(path_of(thing), {"data": {"k": "w"}}, PatchType.MERGE)
    assert changed == await client.get(path_of(thing))
    await client.delete(path_of(thing), uid=thing["metadata"]["uid"])
    for begun, wanted in ((thing, ["MODIFIED", "DELETED"]), (changed, ["DELETED"])):
        version, seen = begun["metadata"]["resourceVersion"], []
        async with client.watch(MAPS, resource_version=version, query=name) as events:
            async for event in events:
                seen += [event.type] if event.type != "BOOKMARK" else []
                if len(seen) == len(wanted):
                    break
        assert seen == wanted


async def test_a_name_that_is_taken_and_a_version_that_is_old_are_conflicts(client):
    thing = await made(client)
    with pytest.raises(Conflict):
        await client.create(MAPS, {"metadata": {"name": thing["metadata"]["name"]}})
    guards = {"resourceVersion": thing["metadata"]["resourceVersion"]}
    await client.patch(path_of(thing), {"data": {"k": "w"}}, PatchType.MERGE)
    with pytest.raises(Conflict):
        await client.patch(path_of(thing), {"metadata": guards, "data": {}}, PatchType.MERGE)


async def test_a_delete_for_another_uid_is_a_conflict(client):
    thing = await made(client)
    with pytest.raises(Conflict):
        await client.delete(path_of(thing), uid="other")
    assert await client.get(path_of(thing))


async def test_what_is_malformed_is_refused(client):
    with pytest.raises(Refused) as refused:
        await client.create(MAPS, {"metadata": {"name": "UPPER"}})
    assert refused.value.code == 422
    assert refused.value.reason == "Invalid"


async def test_a_collection_is_read_page_by_page(client):
    label = unique("l")
    names = {(await made(client, of=label))["metadata"]["name"] for _ in range(3)}
    query = {"labelSelector": f"of={label}"}
    first = await client.page(MAPS, query=query, limit=2)
    rest = await client.page(MAPS, query=query, limit=2, token=first.next_page)
    assert (len(first.items), len(rest.items), rest.next_page) == (2, 1, "")
    assert {each["metadata"]["name"] for each in (*first.items, *rest.items)} == names


async def test_a_watch_by_name_tells_of_one_object_and_no_other(client):
    thing, other = await made(client), await made(client)
    name = thing["metadata"]["name"]
    page = await client.page(MAPS, query={"fieldSelector": f"metadata.name={name}"})
    async with client.watch(
        MAPS,
        resource_version=page.resource_version,
        query={"fieldSelector": f"metadata.name={name}"},
    ) as events:
        await client.patch(path_of(other), {"data": {"k": "w"}}, PatchType.MERGE)
        await client.patch(path_of(thing), {"data": {"k": "w"}}, PatchType.MERGE)
        await client.delete(path_of(thing), uid=thing["metadata"]["uid"])
        seen = []
        async for event in events:
            if event.type != "BOOKMARK":
                seen.append((event.type, event.object["metadata"]["name"]))
            if len(seen) == 2:
                break
    assert seen == [("MODIFIED", name), ("DELETED", name)]


async def test_a_token_from_before_a_compaction_is_expired(client, server):
    label = unique("l")
    for _ in range(2):
        await made(client, of=label)
    query = {"labelSelector": f"of={label}"}
    first = await client.page(MAPS, query=query, limit=1)
    await made(client, of=label)
    server.compact()
    with pytest.raises(Expired):
        await client.page(MAPS, query=query, limit=1, token=first.next_page)


async def test_an_eviction_that_a_budget_refuses_says_so_by_its_cause(client, namespace):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await client.create(pods, {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": spec})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(f"{pods}/p/status", {"status": status}, PatchType.STRATEGIC)
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "x"}}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    await client.create(budgets, budget)
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    counts["observedGeneration"] = 1
    await client.patch(f"{budgets}/b/status", {"status": counts}, PatchType.MERGE)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    with pytest.raises(TooManyRequests) as refused:
        await client.create(f"{pods}/p/eviction", body)
    assert refused.value.causes == ("DisruptionBudget",)
    await client.delete(f"{pods}/p", uid=(await client.get(f"{pods}/p"))["metadata"]["uid"])
