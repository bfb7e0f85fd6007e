"""The stand-ins beside the engine: what they would change, as pure functions of what they see."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from simulator.controllers.budgets import budget_status, differs
from simulator.controllers.cloud import Instance, missing_labels, orphans, without_machine
from simulator.controllers.cluster import Cluster
from simulator.controllers.lifecycle import EFFECT, NOT_READY, UNREACHABLE, silent, wanted_taints
from simulator.controllers.owners import Daemon, Workload, missing_daemons, next_replica
from simulator.hardware.power import Power

WORKLOAD = Workload("serve", "rs-uid", replicas=3, gpus=4)
DAEMON = Daemon("agent", "ds-uid", "gpumend", {"containers": [{"command": ["run", "{node}"]}]})


def node(name, ready="True", taints=(), gpus=8):
    return {
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {"taints": [{"key": key, "effect": EFFECT} for key in taints]},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"nvidia.com/gpu": str(gpus)},
        },
    }


def cluster(*nodes):
    return Cluster(nodes={each["metadata"]["name"]: each for each in nodes})


def place(found, pod):
    """Let a pod that an owner wants exist and be ready."""
    pod["metadata"]["uid"] = f"pod-{len(found.pods)}"
    pod["metadata"].setdefault("name", pod["metadata"]["uid"])
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found.pods[pod["metadata"]["uid"]] = pod
    return pod


def test_replicas_spread_over_nodes_that_take_work_until_there_are_enough():
    found = cluster(
        node("a"), node("b"), node("held", taints=["gpumend.io/hold"]), node("off", "False")
    )
    placed = []
    while pod := next_replica(WORKLOAD, found):
        placed.append(place(found, pod)["spec"]["nodeName"])
    assert placed == ["a", "b", "a"]


def test_a_workload_waits_where_no_node_has_room():
    assert next_replica(WORKLOAD, cluster(node("a", gpus=2))) is None


def test_a_terminating_pod_is_replaced_at_once_and_keeps_its_gpus_until_it_is_gone():
    found = cluster(node("a", gpus=4), node("b", gpus=4))
    one = Workload("serve", "rs-uid", replicas=1, gpus=4)
    first = place(found, next_replica(one, found) or {})
    first["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    second = next_replica(one, found)
    assert second
    assert second["spec"]["nodeName"] == "b"


def test_every_node_gets_its_daemon_whatever_its_taints_and_once():
    found = cluster(node("a", taints=["gpumend.io/hold"]), node("b", "Unknown"))
    pods = missing_daemons(DAEMON, found)
    assert [pod["spec"]["nodeName"] for pod in pods] == ["a", "b"]
    assert pods[0]["spec"]["containers"][0]["command"] == ["run", "a"]
    assert pods[0]["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    place(found, pods[0])
    assert [pod["spec"]["nodeName"] for pod in missing_daemons(DAEMON, found)] == ["b"]


def keys(held):
    after = wanted_taints(held)
    assert after is not None
    return [each["key"] for each in after]


def test_only_the_taints_of_node_lifecycle_are_changed_by_it():
    assert wanted_taints(node("a")) is None
    held = node("a", "Unknown", taints=["gpumend.io/hold"])
    assert keys(held) == ["gpumend.io/hold", UNREACHABLE]
    back = node("a", "True", taints=["gpumend.io/hold", UNREACHABLE])
    assert keys(back) == ["gpumend.io/hold"]
    assert keys(node("a", "False", [UNREACHABLE])) == [NOT_READY]


def test_a_kubelet_is_silent_when_its_lease_is_older_than_it_lasts():
    def lease(name, age):
        renewed = datetime.now(UTC) - timedelta(seconds=age)
        spec = {"renewTime": renewed.isoformat(), "leaseDurationSeconds": 4}
        return {"metadata": {"name": name}, "spec": spec}

    nodes = {"a": node("a"), "b": node("b"), "c": node("c", "Unknown")}
    found = silent(nodes, [lease("a", 5), lease("b", 3), lease("c", 9), lease("gone", 9)])
    assert [each["metadata"]["name"] for each in found] == ["a"]


def budget():
    return {
        "metadata": {"namespace": "default", "name": "serve", "generation": 1},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "serve"}}},
    }


def test_a_budget_allows_what_is_healthy_beyond_the_desired_and_counts_what_it_allowed():
    found = cluster(node("a"), node("b"))
    pods = []
    while pod := next_replica(WORKLOAD, found):
        pods.append(place(found, pod))
    status = budget_status(budget(), found, {"rs-uid": 3})
    assert (status["currentHealthy"], status["desiredHealthy"]) == (3, 2)
    assert status["disruptionsAllowed"] == 1
    just_now = datetime.now(UTC).isoformat()
    evicting = {**budget(), "status": {"disruptedPods": {pods[0]["metadata"]["name"]: just_now}}}
    assert budget_status(evicting, found, {"rs-uid": 3})["disruptionsAllowed"] == 0
    pods[0]["metadata"]["deletionTimestamp"] = just_now
    seen = budget_status(evicting, found, {"rs-uid": 3})
    assert seen["disruptionsAllowed"] == 0
    assert differs(evicting, seen)


def of_machine(name, labels=None):
    made = node(name)
    made["metadata"]["labels"] = labels or {}
    made["spec"]["providerID"] = f"cloud://{name}"
    return made


def instances(**more):
    made = Instance("cloud://a", "", {"rack": "r1"}, **more)
    return {made.provider_id: made}


def test_the_cloud_says_where_a_machine_stands_and_says_it_again_of_a_node_made_anew():
    lacking = list(missing_labels([of_machine("a"), of_machine("b")], instances()))
    assert [(each["metadata"]["name"], labels) for each, labels in lacking] == [
        ("a", {"rack": "r1"})
    ]
    assert list(missing_labels([of_machine("a", {"rack": "r1"})], instances())) == []


@pytest.mark.parametrize(
    ("state", "forgetful", "deleted"),
    [
        (Power.ON, True, False),
        (Power.DARK, False, False),
        (Power.OFF, False, False),
        (Power.GONE, False, True),
        (Power.DARK, True, True),
        (Power.OFF, True, True),
    ],
)
def test_a_node_goes_with_its_machine_and_in_a_forgetful_cloud_whenever_that_is_off(
    state, forgetful, deleted
):
    found = without_machine([of_machine("a")], instances(forgetful=forgetful), lambda _: state)
    assert bool(list(found)) is deleted


def test_a_pod_is_an_orphan_while_its_node_is_not_there():
    found = cluster(node("a"))
    pod = {"metadata": {}, "spec": {"nodeName": "a"}}
    gone = {"metadata": {}, "spec": {"nodeName": "b"}}
    unbound: dict[str, Any] = {"metadata": {}, "spec": {}}
    assert list(orphans([pod, gone, unbound], found.nodes)) == [gone]
