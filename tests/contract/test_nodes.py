"""Nodes: taints, cordon, conditions, and how far the status subresource reaches."""

import pytest

from tests.contract.client import JSON_PATCH, MERGE, STRATEGIC, causes, refusal
from tests.contract.conftest import condition, unique

NODES = "/api/v1/nodes"
HOLD = {"key": "gpumend.io/hold", "value": "gpu-lost", "effect": "NoSchedule"}
OTHER = {"key": "example.org/x", "effect": "NoExecute"}


def path(node):
    return f"{NODES}/{node['metadata']['name']}"


async def test_taints_are_replaced_as_a_whole_by_every_kind_of_patch(api, node):
    for kind in (MERGE, STRATEGIC):
        first = await api.patch(path(node), {"spec": {"taints": [HOLD]}}, kind)
        assert first.json()["spec"]["taints"] == [HOLD]
        second = await api.patch(path(node), {"spec": {"taints": [OTHER]}}, kind)
        assert second.json()["spec"]["taints"] == [OTHER]


async def test_the_last_taint_gone_leaves_no_list(api, node):
    await api.patch(path(node), {"spec": {"taints": [HOLD]}})
    empty: tuple[object, ...] = ([], None)
    for gone in empty:
        answer = await api.patch(path(node), {"spec": {"taints": gone}})
        assert "taints" not in answer.json()["spec"]


async def test_a_hold_and_a_mark_go_on_in_one_patch(api, node):
    meta = {
        "resourceVersion": node["metadata"]["resourceVersion"],
        "uid": node["metadata"]["uid"],
        "annotations": {"gpumend.io/incident": "{}"},
    }
    answer = await api.patch(path(node), {"metadata": meta, "spec": {"taints": [HOLD]}})
    assert answer.status_code == 200
    assert answer.json()["metadata"]["annotations"]["gpumend.io/incident"] == "{}"
    assert answer.json()["spec"]["taints"] == [HOLD]


async def test_a_taint_changes_its_value_beside_a_foreign_one_and_only_where_nobody_wrote(
    api, node
):
    swept = {"key": "gpumend.io/unproven", "value": "sweep", "effect": "NoSchedule"}
    before = (await api.patch(path(node), {"spec": {"taints": [OTHER, swept]}})).json()
    foreign = before["spec"]["taints"][0]
    guards = {key: before["metadata"][key] for key in ("uid", "resourceVersion")}
    memory = {"gpumend.io/proof": '{"tried": "2026-11-29T12:00:00Z"}'}
    found = {**swept, "value": "found"}
    body = {"metadata": {**guards, "annotations": memory}, "spec": {"taints": [foreign, found]}}
    answer = await api.patch(path(node), body)
    assert answer.json()["spec"]["taints"] == [foreign, found]
    assert answer.json()["metadata"]["annotations"].items() >= memory.items()
    assert refusal(await api.patch(path(node), body)) == (409, "Conflict")


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
async def test_a_patch_with_an_old_version_conflicts(api, node, kind):
    await api.patch(path(node), {"metadata": {"labels": {"x": "1"}}})
    old = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}}
    answer = await api.patch(path(node), {**old, "spec": {"taints": [HOLD]}}, kind)
    assert refusal(answer) == (409, "Conflict")
    assert "taints" not in (await api.read(path(node)))["spec"]


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
async def test_a_patch_for_another_uid_is_refused(api, node, kind):
    meta = {"uid": "0d6c7b1e-0000-4000-8000-000000000000"}
    answer = await api.patch(path(node), {"metadata": meta, "spec": {"taints": [HOLD]}}, kind)
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "metadata.uid"


async def test_a_json_patch_that_tests_version_and_uid_applies_to_that_version_only(api, node):
    def patch(version):
        return [
            {"op": "test", "path": "/metadata/uid", "value": node["metadata"]["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/spec/taints", "value": [HOLD]},
        ]

    answer = await api.patch(path(node), patch("1"), JSON_PATCH)
    assert refusal(answer) == (422, "Invalid")
    answer = await api.patch(path(node), patch(node["metadata"]["resourceVersion"]), JSON_PATCH)
    assert answer.status_code == 200
    assert answer.json()["spec"]["taints"] == [HOLD]


async def test_a_taint_value_must_be_a_label_value(api, node):
    for value in ("not valid", "x" * 64, "-x"):
        answer = await api.patch(path(node), {"spec": {"taints": [{**HOLD, "value": value}]}})
        assert refusal(answer) == (422, "Invalid")
        assert causes(answer)[0]["field"] == "metadata.taints[0].value"


async def test_a_taint_needs_a_known_effect(api, node):
    answer = await api.patch(path(node), {"spec": {"taints": [{**HOLD, "effect": "Never"}]}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["reason"] == "FieldValueNotSupported"


async def test_key_and_effect_may_come_once(api, node):
    taints = [HOLD, {**HOLD, "value": "other"}]
    answer = await api.patch(path(node), {"spec": {"taints": taints}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["reason"] == "FieldValueDuplicate"
    taints = [HOLD, {**HOLD, "effect": "NoExecute"}]
    answer = await api.patch(path(node), {"spec": {"taints": taints}})
    assert answer.status_code == 200


async def test_a_label_value_must_be_valid(api, node):
    answer = await api.patch(path(node), {"metadata": {"labels": {"x": "a b"}}})
    assert refusal(answer) == (422, "Invalid")
    assert causes(answer)[0]["field"] == "metadata.labels"


async def test_a_cordon_comes_and_goes(api, node):
    cordoned = (await api.patch(path(node), {"spec": {"unschedulable": True}}, STRATEGIC)).json()
    assert cordoned["spec"]["unschedulable"] is True
    free = (await api.patch(path(node), {"spec": {"unschedulable": False}}, STRATEGIC)).json()
    assert "unschedulable" not in free["spec"]


async def test_status_and_the_rest_are_written_apart(api, node):
    condition_patch = {"status": {"conditions": [condition("Ready", "False")]}}
    both = {**condition_patch, "spec": {"taints": [HOLD]}}
    main = (await api.patch(path(node), both)).json()
    assert main["status"]["conditions"][0]["status"] == "True"
    assert main["spec"]["taints"] == [HOLD]
    status = (await api.patch(f"{path(node)}/status", {**both, "spec": {"taints": []}})).json()
    assert status["status"]["conditions"][0]["status"] == "False"
    assert status["spec"]["taints"] == [HOLD]


async def test_a_status_patch_may_change_labels_and_annotations(api, node):
    meta = {"labels": {"x": "1"}, "annotations": {"y": "2"}}
    answer = await api.patch(f"{path(node)}/status", {"metadata": meta}, STRATEGIC)
    assert answer.json()["metadata"]["labels"]["x"] == "1"
    assert answer.json()["metadata"]["annotations"]["y"] == "2"


async def test_conditions_merge_by_type_in_a_strategic_patch(api, node):
    status = f"{path(node)}/status"
    memory = condition("gpumend.io/Memory", "False")
    answer = await api.patch(status, {"status": {"conditions": [memory]}}, STRATEGIC)
    found = {c["type"]: c["status"] for c in answer.json()["status"]["conditions"]}
    assert found == {"Ready": "True", "gpumend.io/Memory": "False"}
    change = {"type": "gpumend.io/Memory", "status": "True"}
    answer = await api.patch(status, {"status": {"conditions": [change]}}, STRATEGIC)
    found = {c["type"]: c for c in answer.json()["status"]["conditions"]}
    assert found["gpumend.io/Memory"]["status"] == "True"
    assert found["gpumend.io/Memory"]["reason"] == "Test"


async def test_a_condition_is_deleted_by_a_directive(api, node):
    status = f"{path(node)}/status"
    memory = condition("gpumend.io/Memory", "False")
    await api.patch(status, {"status": {"conditions": [memory]}}, STRATEGIC)
    gone = {"$patch": "delete", "type": "gpumend.io/Memory"}
    answer = await api.patch(status, {"status": {"conditions": [gone]}}, STRATEGIC)
    assert [c["type"] for c in answer.json()["status"]["conditions"]] == ["Ready"]


async def test_a_merge_patch_replaces_all_conditions(api, node):
    memory = condition("gpumend.io/Memory", "False")
    answer = await api.patch(f"{path(node)}/status", {"status": {"conditions": [memory]}})
    assert [c["type"] for c in answer.json()["status"]["conditions"]] == ["gpumend.io/Memory"]


async def test_a_list_item_without_its_merge_key_is_refused(api, node):
    body = {"status": {"conditions": [{"status": "True"}]}}
    answer = await api.patch(f"{path(node)}/status", body, STRATEGIC)
    assert answer.status_code in (400, 500)


async def test_null_takes_an_annotation_away(api, node):
    await api.patch(path(node), {"metadata": {"annotations": {"a": "1", "b": "2"}}})
    answer = await api.patch(path(node), {"metadata": {"annotations": {"a": None}}})
    assert answer.json()["metadata"]["annotations"] == {"b": "2"}
    answer = await api.patch(path(node), {"metadata": {"annotations": {"b": None}}})
    assert "annotations" not in answer.json()["metadata"]


async def test_a_patch_of_an_unknown_kind_is_refused(api, node):
    answer = await api.patch(path(node), {}, "application/json")
    assert refusal(answer) == (415, "UnsupportedMediaType")


async def test_a_json_patch_must_be_a_list(api, node):
    answer = await api.patch(path(node), {"op": "add"}, JSON_PATCH)
    assert refusal(answer) == (400, "BadRequest")


async def test_json_patch_operations(api, node):
    operations = [
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "1"},
        {"op": "copy", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/c"},
        {"op": "move", "from": "/metadata/labels/c", "path": "/metadata/labels/d"},
        {"op": "replace", "path": "/metadata/labels/d", "value": "2"},
        {"op": "add", "path": "/spec/taints", "value": [HOLD]},
        {"op": "add", "path": "/spec/taints/-", "value": OTHER},
        {"op": "remove", "path": "/spec/taints/0"},
    ]
    answer = await api.patch(path(node), operations, JSON_PATCH)
    assert answer.status_code == 200, answer.text
    labels = answer.json()["metadata"]["labels"]
    assert labels == {"pool": node["metadata"]["name"], "a/b": "1", "d": "2"}
    assert answer.json()["spec"]["taints"] == [OTHER]


async def test_a_json_patch_whose_path_is_missing_is_refused(api, node):
    operations = [{"op": "remove", "path": "/metadata/labels/none"}]
    answer = await api.patch(path(node), operations, JSON_PATCH)
    assert refusal(answer) == (422, "Invalid")


async def test_an_uid_can_not_be_changed_by_json_patch(api, node):
    operations = [{"op": "replace", "path": "/metadata/uid", "value": "x"}]
    answer = await api.patch(path(node), operations, JSON_PATCH)
    assert answer.status_code in (409, 422)


async def test_a_deleted_node_comes_back_as_another(api, node):
    answer = await api.delete(path(node))
    assert answer.status_code == 200
    assert answer.json()["kind"] == "Status"
    assert answer.json()["status"] == "Success"
    assert answer.json()["details"]["uid"] == node["metadata"]["uid"]
    again = await api.created(NODES, {"metadata": {"name": node["metadata"]["name"]}})
    assert again["metadata"]["uid"] != node["metadata"]["uid"]


async def test_a_node_is_born_with_the_status_it_brings(api):
    name = unique("n")
    status = {"nodeInfo": {"bootID": "b"}, "allocatable": {"nvidia.com/gpu": "8"}}
    made = await api.created(NODES, {"metadata": {"name": name}, "status": status})
    assert made["status"]["nodeInfo"]["bootID"] == "b"
    assert made["status"]["allocatable"] == {"nvidia.com/gpu": "8"}
    await api.delete(f"{NODES}/{name}")
