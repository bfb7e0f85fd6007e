import json
from datetime import UTC, datetime

import pytest

from fleet.mark import Mark, MarkState, format_mark, parse_mark
from fleet.node import machine_of, read_node

MARK = Mark(
    id="0a1b2c3d-20261129120311",
    machine="0a1b2c3d",
    uid="u1",
    state=MarkState.PENDING,
    opened=datetime(2026, 11, 29, 12, 3, 11, tzinfo=UTC),
    undo=("taint",),
)


def a_manifest(**changes):
    manifest = {
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "resourceVersion": "42",
            "labels": {"gpumend.io/pool": "a"},
            "annotations": {"gpumend.io/incident": format_mark(MARK)},
        },
        "spec": {
            "providerID": "sim://m1",
            "taints": [{"key": "gpumend.io/hold", "value": "gpu-lost", "effect": "NoSchedule"}],
        },
        "status": {
            "nodeInfo": {"bootID": "b1", "systemUUID": "s1"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"nvidia.com/gpu": "8"},
        },
    }
    return {**manifest, **changes}


def test_a_node_is_read_with_its_mark_and_our_hold():
    node = read_node(a_manifest(), "c1")

    assert node.identity.name == "n1"
    assert node.identity.machine == machine_of("sim://m1", "s1", "u1")
    assert node.hold is not None
    assert node.hold.value == "gpu-lost"
    assert node.mark == MARK
    assert (node.boot_id, node.ready, node.managed) == ("b1", "True", True)


def test_a_broken_mark_is_said_to_be_broken_not_absent():
    manifest = a_manifest()
    manifest["metadata"]["annotations"]["gpumend.io/incident"] = "{half"

    node = read_node(manifest, "c1")

    assert node.mark is None
    assert "not an incident mark" in node.mark_problem


def test_a_bare_node_reads_as_not_ready_and_managed():
    node = read_node({"metadata": {"name": "n1", "uid": "u1"}}, "c1")

    assert (node.ready, node.managed, node.boot_id, node.taints) == ("Unknown", True, "", ())


@pytest.mark.parametrize(("value", "managed"), [("false", False), ("False", False), ("true", True)])
def test_the_opt_out_label_is_obeyed(value, managed):
    manifest = a_manifest()
    manifest["metadata"]["labels"]["gpumend.io/managed"] = value

    assert read_node(manifest, "c1").managed is managed


def test_a_machine_keeps_its_name_when_its_node_object_is_reborn():
    assert machine_of("sim://m1", "s1", "u1") == machine_of("sim://m1", "s1", "u2")


def test_another_machine_under_an_old_name_is_another_machine():
    assert machine_of("sim://m1", "s1", "u1") != machine_of("sim://m2", "s2", "u2")


def test_a_machine_that_names_itself_nowhere_is_its_node_object():
    assert machine_of("", "", "u1") != machine_of("", "", "u2")


def test_a_mark_survives_its_annotation():
    assert parse_mark(format_mark(MARK)) == MARK


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", json.dumps({"id": "x", "undo": "taint"}), '{"id":1,"opened":"soon"}'],
)
def test_an_annotation_that_is_no_mark_is_refused(text):
    with pytest.raises(ValueError, match="not an incident mark"):
        parse_mark(text)
