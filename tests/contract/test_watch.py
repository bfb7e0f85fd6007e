"""Lists in pages, and watches: where they start, what they show, how they end."""

import json

import pytest

from tests.contract.client import eventually, refusal
from tests.contract.conftest import unique

GROUP = "test.gpumend.io"


@pytest.fixture
def maps(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def make(api, path, *names, **labels):
    meta = {"labels": labels} if labels else {}
    return [await api.created(path, {"metadata": {"name": n, **meta}}) for n in names]


def names(body):
    return [item["metadata"]["name"] for item in body["items"]]


async def test_a_list_has_its_kind_and_version_and_bare_items(api, maps):
    await make(api, maps, "b", "a")
    body = await api.read(maps)
    assert body["kind"] == "ConfigMapList"
    assert body["apiVersion"] == "v1"
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert names(body) == ["a", "b"]
    assert "kind" not in body["items"][0]


async def test_an_empty_list_has_items(api, maps):
    body = await api.read(maps)
    assert body["items"] == []


async def test_a_list_reaches_over_namespaces(api, maps):
    await make(api, maps, "only-here", mark=(mark := unique("m")))
    body = await api.read("/api/v1/configmaps", labelSelector=f"mark={mark}")
    assert names(body) == ["only-here"]


async def test_pages_show_one_moment(api, maps):
    await make(api, maps, "a", "b", "c", "d", "e")
    first = await api.read(maps, limit="2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await make(api, maps, "c2")
    await api.delete(f"{maps}/d")
    await api.patch(f"{maps}/e", {"data": {"k": "v"}})
    token = first["metadata"]["continue"]
    second = await api.read(maps, limit="2", **{"continue": token})
    assert names(second) == ["c", "d"]
    third = await api.read(maps, limit="2", **{"continue": second["metadata"]["continue"]})
    assert names(third) == ["e"]
    assert "data" not in third["items"][0]
    assert "continue" not in third["metadata"]
    versions = {p["metadata"]["resourceVersion"] for p in (first, second, third)}
    assert len(versions) == 1


async def test_a_token_from_before_a_compaction_has_expired(api, maps, server):
    await make(api, maps, "a", "b", "c")
    first = await api.read(maps, limit="1")
    await make(api, maps, "d")
    server.compact()
    answer = await api.get(maps, limit="1", **{"continue": first["metadata"]["continue"]})
    assert refusal(answer) == (410, "Expired")


async def test_a_token_that_is_none_is_refused(api, maps):
    answer = await api.get(maps, **{"continue": "nonsense"})
    assert refusal(answer) == (400, "BadRequest")


async def test_a_list_may_ask_for_an_exact_version(api, maps):
    (made,) = await make(api, maps, "a")
    await make(api, maps, "b")
    version = made["metadata"]["resourceVersion"]
    body = await api.read(maps, resourceVersion=version, resourceVersionMatch="Exact")
    assert names(body) == ["a"]
    assert body["metadata"]["resourceVersion"] == version
    newer = await api.read(maps, resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert names(newer) == ["a", "b"]


async def test_a_version_from_the_future_can_not_be_listed(api, maps):
    answer = await api.get(maps, resourceVersion="100000000")
    assert refusal(answer) == (504, "Timeout")


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("app=x", ["a", "b"]),
        ("app==x,rank=1", ["b"]),
        ("app!=x", ["c", "d"]),
        ("rank in (0, 1)", ["a", "b"]),
        ("rank notin (0)", ["b", "c", "d"]),
        ("rank", ["a", "b"]),
        ("!rank", ["c", "d"]),
        ("app in (x,y),!rank", ["c"]),
        ("app=", []),
    ],
)
async def test_label_selectors(api, maps, selector, chosen):
    await make(api, maps, "a", app="x", rank="0")
    await make(api, maps, "b", app="x", rank="1")
    await make(api, maps, "c", app="y")
    await make(api, maps, "d")
    assert names(await api.read(maps, labelSelector=selector)) == chosen


async def test_a_label_selector_that_is_none_is_refused(api, maps):
    for text in ("a in (", "a==b=c"):
        assert refusal(await api.get(maps, labelSelector=text)) == (400, "BadRequest")


async def test_field_selectors(api, maps, namespace):
    await make(api, maps, "a", "b")
    assert names(await api.read(maps, fieldSelector="metadata.name=a")) == ["a"]
    assert names(await api.read(maps, fieldSelector="metadata.name!=a")) == ["b"]
    where = f"metadata.namespace={namespace}"
    assert names(await api.read("/api/v1/configmaps", fieldSelector=where)) == ["a", "b"]
    answer = await api.get(maps, fieldSelector="data.k=v")
    assert refusal(answer) == (400, "BadRequest")


async def test_pods_are_chosen_by_node_and_phase(api, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}]}
    node = unique("n")
    await api.created(path, {"metadata": {"name": "a"}, "spec": {**spec, "nodeName": node}})
    await api.created(path, {"metadata": {"name": "b"}, "spec": spec})
    await api.patch(f"{path}/a/status", {"status": {"phase": "Running"}})
    assert names(await api.read("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")) == ["a"]
    assert names(await api.read(path, fieldSelector="spec.nodeName=")) == ["b"]
    assert names(await api.read(path, fieldSelector="status.phase!=Running")) == ["b"]
    both = f"spec.nodeName={node},status.phase=Pending"
    assert names(await api.read("/api/v1/pods", fieldSelector=both)) == []


async def test_a_watch_goes_on_where_a_list_ended(api, maps):
    await make(api, maps, "old")
    version = (await api.read(maps))["metadata"]["resourceVersion"]
    async with api.watch(maps, resourceVersion=version) as watch:
        (made,) = await make(api, maps, "a")
        assert await watch.next() == ("ADDED", made)
        changed = (await api.patch(f"{maps}/a", {"data": {"k": "v"}})).json()
        assert await watch.next() == ("MODIFIED", changed)
        await api.delete(f"{maps}/a")
        kind, last = await watch.next()
        assert kind == "DELETED"
        assert last["data"] == {"k": "v"}
        assert int(last["metadata"]["resourceVersion"]) > int(
            changed["metadata"]["resourceVersion"]
        )


async def test_a_watch_replays_what_was_missed(api, maps):
    version = (await api.read(maps))["metadata"]["resourceVersion"]
    await make(api, maps, "a", "b")
    await api.delete(f"{maps}/a")
    async with api.watch(maps, resourceVersion=version) as watch:
        events = [await watch.next() for _ in range(3)]
    assert [(kind, o["metadata"]["name"]) for kind, o in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_a_watch_from_nowhere_begins_with_what_is_there(api, maps, query):
    await make(api, maps, "a", "b")
    async with api.watch(maps, **query) as watch:
        first = [await watch.next() for _ in range(2)]
        assert sorted((kind, o["metadata"]["name"]) for kind, o in first) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        await make(api, maps, "c")
        assert (await watch.until("ADDED", "c"))["metadata"]["name"] == "c"


async def test_a_watch_with_a_selector_shows_objects_come_and_go(api, maps):
    version = (await api.read(maps))["metadata"]["resourceVersion"]
    async with api.watch(maps, resourceVersion=version, labelSelector="app=x") as watch:
        await make(api, maps, "a", app="y")
        moved = await api.patch(f"{maps}/a", {"metadata": {"labels": {"app": "x"}}})
        assert await watch.next() == ("ADDED", moved.json())
        changed = await api.patch(f"{maps}/a", {"data": {"k": "v"}})
        assert await watch.next() == ("MODIFIED", changed.json())
        left = await api.patch(f"{maps}/a", {"metadata": {"labels": {"app": "y"}}})
        kind, last = await watch.next()
        assert kind == "DELETED"
        assert last["metadata"]["labels"] == {"app": "x"}
        assert last["metadata"]["resourceVersion"] == left.json()["metadata"]["resourceVersion"]
        await make(api, maps, "b", app="x")
        assert (await watch.next())[1]["metadata"]["name"] == "b"


async def test_a_watch_of_a_single_name(api, maps):
    await make(api, maps, "a", "b")
    async with api.watch(maps, fieldSelector="metadata.name=b") as watch:
        assert (await watch.next())[1]["metadata"]["name"] == "b"


async def test_a_watch_ends_when_its_time_is_over(api, maps):
    await make(api, maps, "a")
    async with api.watch(maps, timeoutSeconds="1") as watch:
        events = await watch.end()
    assert [e["type"] for e in events] == ["ADDED"]


async def test_a_streaming_list_ends_with_a_marked_bookmark(api, maps):
    await make(api, maps, "a", "b")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(maps, allowWatchBookmarks="true", **query) as watch:
        seen = [await watch.next() for _ in range(2)]
        assert {o["metadata"]["name"] for _, o in seen} == {"a", "b"}
        kind, mark = await watch.next()
    assert kind == "BOOKMARK"
    assert mark["kind"] == "ConfigMap"
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) > 0


async def test_a_watch_from_before_the_known_history_ends_with_an_error(api, things):
    async with api.watch(things, resourceVersion="1") as watch:
        (event,) = await watch.end()
    assert event["type"] == "ERROR"
    assert event["object"]["kind"] == "Status"
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"
    assert event["object"]["message"].startswith("too old resource version: 1 (")


@pytest.fixture
async def things(api, namespace):
    """A custom kind of its own."""
    plural = unique("things")
    async with api.watch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions") as watch:
        await api.created(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(plural)
        )
        while not established(await watch.until("MODIFIED", f"{plural}.{GROUP}")):
            pass
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/{plural}"
    await eventually(lambda: api.get(path), 200)  # established is not yet served, in the real one
    yield path
    await api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}")


def established(found):
    conditions = found.get("status", {}).get("conditions", [])
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def definition(plural):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": schema}
    kind = plural.replace("-", "").capitalize()
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind},
            "versions": [version],
        },
    }


async def test_custom_objects_live_like_others(api, things):
    kind = json.loads((await api.get(things)).text)["kind"].removesuffix("List")
    head = {"apiVersion": f"{GROUP}/v1", "kind": kind}
    made = await api.created(
        things, {**head, "metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"y": 1}}
    )
    assert made["metadata"]["generation"] == 1
    assert "status" not in made
    main = (await api.patch(f"{things}/a", {"spec": {"x": 2}, "status": {"y": 2}})).json()
    assert main["metadata"]["generation"] == 2
    assert "status" not in main
    meta = {"labels": {"l": "1"}}
    status = await api.patch(
        f"{things}/a/status", {"metadata": meta, "spec": {"x": 3}, "status": {"y": 3}}
    )
    assert status.json()["spec"] == {"x": 2}
    assert status.json()["status"] == {"y": 3}
    assert status.json()["metadata"]["generation"] == 2
    assert "labels" not in status.json()["metadata"]
    items = (await api.read(things))["items"]
    assert items[0]["kind"] == kind
    answer = await api.patch(f"{things}/a", {"spec": {}}, "application/strategic-merge-patch+json")
    assert refusal(answer) == (415, "UnsupportedMediaType")
    answer = await api.put(f"{things}/a", {**head, "metadata": {"name": "a"}})
    assert refusal(answer) == (422, "Invalid")
