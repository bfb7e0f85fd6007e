"""Creating, reading, replacing: what is filled in, what conflicts, what is refused."""

import asyncio

from tests.contract.client import causes, refusal
from tests.contract.conftest import unique

NODES = "/api/v1/nodes"


def maps(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def test_a_new_object_gets_identity_time_and_version(api, namespace):
    body = {"metadata": {"name": "a", "uid": "mine", "generation": 7}, "data": {"k": "v"}}
    made = await api.created(maps(namespace), body)
    meta = made["metadata"]
    assert made["kind"] == "ConfigMap"
    assert made["apiVersion"] == "v1"
    assert meta["namespace"] == namespace
    assert meta["uid"] not in ("", "mine")
    assert meta["creationTimestamp"].endswith("Z")
    assert int(meta["resourceVersion"]) > 0
    read = await api.read(f"{maps(namespace)}/a")
    assert read["metadata"]["resourceVersion"] == meta["resourceVersion"]


async def test_the_same_name_twice_is_refused(api, namespace):
    await api.created(maps(namespace), {"metadata": {"name": "a"}})
    answer = await api.post(maps(namespace), {"metadata": {"name": "a"}})
    assert refusal(answer) == (409, "AlreadyExists")
    assert answer.json()["details"] == {"name": "a", "kind": "configmaps"}
    assert answer.json()["message"] == 'configmaps "a" already exists'


async def test_of_many_who_create_the_same_name_one_wins(api, namespace):
    answers = await asyncio.gather(
        *(api.post(maps(namespace), {"metadata": {"name": "a"}}) for _ in range(8))
    )
    assert sorted(a.status_code for a in answers) == [201] + [409] * 7


async def test_generate_name_makes_a_name(api, namespace):
    made = await api.created(maps(namespace), {"metadata": {"generateName": "job-"}})
    assert made["metadata"]["name"].startswith("job-")
    assert len(made["metadata"]["name"]) == len("job-") + 5
    assert made["metadata"]["generateName"] == "job-"


async def test_an_object_without_a_name_is_refused(api, namespace):
    answer = await api.post(maps(namespace), {"metadata": {}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "metadata.name"


async def test_a_name_that_is_no_dns_name_is_refused(api, namespace):
    answer = await api.post(maps(namespace), {"metadata": {"name": "Not_Valid"}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["reason"] == "FieldValueInvalid"
    assert causes(answer)[0]["field"] == "metadata.name"


async def test_what_is_not_there_is_not_found(api, namespace):
    answer = await api.get(f"{maps(namespace)}/none")
    assert refusal(answer) == (404, "NotFound")
    assert answer.json()["message"] == 'configmaps "none" not found'
    assert answer.json()["details"] == {"name": "none", "kind": "configmaps"}
    for method in (api.delete,):
        assert refusal(await method(f"{maps(namespace)}/none")) == (404, "NotFound")
    assert refusal(await api.patch(f"{maps(namespace)}/none", {})) == (404, "NotFound")


async def test_a_kind_that_is_not_served_is_not_found(api):
    answer = await api.get("/apis/example.org/v1/things")
    assert answer.status_code == 404


async def test_a_group_appears_in_messages_and_details(api, namespace):
    answer = await api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/x")
    assert answer.json()["message"] == 'leases.coordination.k8s.io "x" not found'
    assert answer.json()["details"]["group"] == "coordination.k8s.io"


async def test_nothing_is_created_in_a_namespace_that_is_not_there(api):
    answer = await api.post(maps("no-such-namespace"), {"metadata": {"name": "a"}})
    assert refusal(answer) == (404, "NotFound")
    assert answer.json()["message"] == 'namespaces "no-such-namespace" not found'


async def test_nothing_is_created_in_a_namespace_that_is_ending(api, namespace):
    await api.delete(f"/api/v1/namespaces/{namespace}")
    answer = await api.post(maps(namespace), {"metadata": {"name": "a"}})
    assert refusal(answer) == (403, "Forbidden")
    assert causes(answer)[0]["reason"] == "NamespaceTerminating"


async def test_a_body_for_another_namespace_is_refused(api, namespace):
    answer = await api.post(maps(namespace), {"metadata": {"name": "a", "namespace": "default"}})
    assert refusal(answer) == (400, "BadRequest")


async def test_a_body_of_another_kind_is_refused(api, namespace):
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    assert refusal(await api.post(maps(namespace), body)) == (400, "BadRequest")


async def test_a_body_that_is_no_json_is_refused(api, namespace):
    answer = await api.raw(
        "POST", maps(namespace), content=b"{", headers={"Content-Type": "application/json"}
    )
    assert refusal(answer) == (400, "BadRequest")


async def test_a_value_of_the_wrong_type_is_refused(api):
    body = {"metadata": {"name": unique("n")}, "spec": {"unschedulable": "yes"}}
    assert refusal(await api.post(NODES, body)) == (400, "BadRequest")


async def test_a_body_of_more_than_three_mebibytes_is_refused(api, namespace):
    body = {"metadata": {"name": "a"}, "data": {"k": "x" * (3 << 20)}}
    answer = await api.post(maps(namespace), body)
    assert refusal(answer) == (413, "RequestEntityTooLarge")


async def test_annotations_beyond_256_kib_are_refused(api, namespace):
    body = {"metadata": {"name": "a", "annotations": {"k": "x" * (256 << 10)}}}
    answer = await api.post(maps(namespace), body)
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "metadata.annotations"
    assert causes(answer)[0]["reason"] == "FieldValueTooLong"


async def test_unknown_fields_are_dropped(api, node):
    path = f"{NODES}/{node['metadata']['name']}"
    answer = await api.patch(path, {"spec": {"unscheduleable": True}, "extra": 1})
    assert answer.status_code == 200
    assert "extra" not in answer.json()
    assert "unscheduleable" not in answer.json()["spec"]


async def test_a_replacement_must_name_the_newest_version(api, namespace):
    made = await api.created(maps(namespace), {"metadata": {"name": "a"}})
    path = f"{maps(namespace)}/a"
    second = await api.put(path, {**made, "data": {"k": "1"}})
    assert second.status_code == 200
    assert int(second.json()["metadata"]["resourceVersion"]) > int(
        made["metadata"]["resourceVersion"]
    )
    stale = await api.put(path, {**made, "data": {"k": "2"}})
    assert refusal(stale) == (409, "Conflict")
    assert stale.json()["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_a_replacement_without_a_version_is_unconditional(api, namespace):
    await api.created(maps(namespace), {"metadata": {"name": "a"}})
    answer = await api.put(f"{maps(namespace)}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["uid"]


async def test_a_replacement_of_a_lease_must_name_a_version(api, namespace):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    await api.created(path, {"metadata": {"name": "a"}})
    answer = await api.put(f"{path}/a", {"metadata": {"name": "a"}, "spec": {}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "metadata.resourceVersion"


async def test_a_replacement_for_another_uid_conflicts(api, namespace):
    await api.created(maps(namespace), {"metadata": {"name": "a"}})
    body = {"metadata": {"name": "a", "uid": "0d6c7b1e-0000-4000-8000-000000000000"}}
    answer = await api.put(f"{maps(namespace)}/a", body)
    assert refusal(answer) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.json()["message"]


async def test_a_replacement_under_another_name_is_refused(api, namespace):
    await api.created(maps(namespace), {"metadata": {"name": "a"}})
    answer = await api.put(f"{maps(namespace)}/a", {"metadata": {"name": "b"}})
    assert refusal(answer) == (400, "BadRequest")


async def test_a_write_that_changes_nothing_makes_no_version(api, namespace):
    made = await api.created(maps(namespace), {"metadata": {"name": "a"}, "data": {"k": "v"}})
    path = f"{maps(namespace)}/a"
    again = (await api.put(path, made)).json()
    patched = (await api.patch(path, {"data": {"k": "v"}})).json()
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_dry_run_stores_nothing(api, namespace):
    answer = await api.post(maps(namespace), {"metadata": {"name": "a"}}, dryRun="All")
    assert answer.status_code == 201
    assert (await api.get(f"{maps(namespace)}/a")).status_code == 404
    made = await api.created(maps(namespace), {"metadata": {"name": "a"}})
    path = f"{maps(namespace)}/a"
    answer = await api.patch(path, {"data": {"k": "v"}}, dryRun="All")
    assert answer.json()["data"] == {"k": "v"}
    assert (await api.delete(path, dryRun="All")).status_code == 200
    read = await api.read(path)
    assert read["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert "data" not in read


async def test_versions_grow_across_kinds(api, namespace, node):
    first = await api.created(maps(namespace), {"metadata": {"name": "a"}})
    path = f"{NODES}/{node['metadata']['name']}"
    second = (await api.patch(path, {"metadata": {"labels": {"x": "1"}}})).json()
    third = await api.created(maps(namespace), {"metadata": {"name": "b"}})
    versions = [int(o["metadata"]["resourceVersion"]) for o in (first, second, third)]
    assert versions == sorted(set(versions))


async def test_a_new_secret_is_opaque(api, namespace):
    path = f"/api/v1/namespaces/{namespace}/secrets"
    made = await api.created(path, {"metadata": {"name": "s"}, "data": {"k": "dmFsdWU="}})
    assert made["type"] == "Opaque"
    assert made["data"] == {"k": "dmFsdWU="}


async def test_a_lease_keeps_its_times_to_the_microsecond(api, namespace):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
    spec |= {"renewTime": "2026-11-29T14:00:00.500000+02:00"}
    made = await api.created(path, {"metadata": {"name": "a"}, "spec": spec})
    assert made["spec"]["renewTime"] == "2026-11-29T12:00:00.500000Z"
    made["spec"]["renewTime"] = "2026-11-29T12:00:01.000000Z"
    again = await api.put(f"{path}/a", made)
    assert again.status_code == 200
    assert again.json()["spec"]["renewTime"] == "2026-11-29T12:00:01.000000Z"


async def test_a_lease_time_needs_exactly_six_digits(api, namespace):
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    for time in ("2026-11-29T12:00:00Z", "2026-11-29T12:00:00.5Z"):
        body = {"metadata": {"name": "a"}, "spec": {"renewTime": time}}
        assert refusal(await api.post(path, body)) == (400, "BadRequest")


async def test_an_event_about_a_node_lives_in_the_default_namespace(api, namespace, node):
    name = unique("e")
    about = {"kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    body = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m"}
    await api.created("/api/v1/namespaces/default/events", body)
    chosen = await api.read(
        "/api/v1/events", fieldSelector=f"involvedObject.uid={node['metadata']['uid']}"
    )
    assert [e["metadata"]["name"] for e in chosen["items"]] == [name]
    answer = await api.post(f"/api/v1/namespaces/{namespace}/events", body)
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "involvedObject.namespace"
