"""Draining, against the API server: what leaves, what stays, and how it ends."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.activity import ActivityCancellationDetails

from activities.drain import DrainActivities
from fleet.fault import FaultName
from fleet.outcome import OutcomeKind
from fleet.part import HOST
from fleet.reason import DEADLINE, HOLD_REMOVED, INTERRUPTED, NEEDS_APPROVAL, PREMISE_GONE
from fleet.step import Step
from tests.cluster import (
    FAULT,
    SOON,
    conditions,
    now,
    pod_manifest,
    request_for,
    running,
    status_of,
)


def drains(cluster):
    return DrainActivities(cluster.api, settle=timedelta(milliseconds=50), jitter=lambda: 0.0).drain


def evictions(cluster):
    return cluster.writes(path="/eviction")


async def test_pods_are_evicted_and_the_drain_ends_when_they_are_gone(cluster, temporal):
    node = await cluster.add_node()
    for name in ("a", "b"):
        await cluster.add_pod(pod_manifest(name))
    await cluster.add_pod(pod_manifest("elsewhere", "n2"))
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"elsewhere"}
    assert any("waiting for 2" in each for each in temporal.said)


async def test_an_empty_node_is_drained_without_a_write(cluster, temporal):
    node = await cluster.add_node()
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert cluster.writes() == []


async def test_r26_a_mixed_bag_is_refused_before_anything_is_evicted(cluster, temporal):
    node = await cluster.add_node()
    await mixed_bag(cluster)
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NEEDS_APPROVAL)
    for name in ("ds-x", "bare-1", "cache-1"):
        assert name in outcome.detail
    assert evictions(cluster) == []


async def test_r26_with_force_the_mixed_bag_leaves_and_the_nodes_own_pods_stay(cluster, temporal):
    node = await cluster.add_node()
    await mixed_bag(cluster)
    request = request_for(node, Step.DRAIN, force=True)
    outcome = await temporal.run(drains(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"kube-proxy", "etcd", "job-1", "job-2"}
    assert "kube-proxy" in outcome.detail
    assert "etcd" in outcome.detail


async def mixed_bag(cluster):
    daemon_set = await cluster.raw.created(
        "/apis/apps/v1/namespaces/default/daemonsets",
        {
            "metadata": {"name": "kube-proxy-owner", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    )
    uid = daemon_set["metadata"]["uid"]
    await cluster.add_pod(pod_manifest("kube-proxy", owner="DaemonSet", uid=uid))
    mirror = pod_manifest("etcd", owner=None)
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "hash"
    await cluster.add_pod(mirror)
    for name, phase in (("job-1", "Succeeded"), ("job-2", "Failed")):
        scratch = [{"name": "v", "emptyDir": {}}]
        job = pod_manifest(name, owner=None, volumes=scratch)
        await cluster.add_pod(job | {"status": {"phase": phase}})
    await cluster.add_pod(pod_manifest("ds-x", owner="DaemonSet", uid="gone"))
    await cluster.add_pod(pod_manifest("bare-1", owner=None))
    await cluster.add_pod(pod_manifest("cache-1", volumes=[{"name": "v", "emptyDir": {}}]))
    await cluster.add_pod(pod_manifest("pend-1") | {"status": {"phase": "Pending"}})
    await cluster.add_pod(pod_manifest("api-1"))


async def test_a_budget_that_says_no_is_waited_out_and_named(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("web"))
    await cluster.add_budget("web-pdb", "web", minAvailable=1)
    await budget_counted(cluster, "web-pdb", currentHealthy=1)
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("web-pdb needs 1 healthy and has 1")
    other = pod_manifest("web-2", "n2")
    other["metadata"]["labels"]["app"] = "web"
    await cluster.add_pod(other)
    outcome = await drain
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"web-2"}


async def test_r16_at_the_deadline_the_budget_in_the_way_is_named_and_nothing_was_forced(
    cluster, temporal
):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("app") | {"status": running(ready=False)})
    await cluster.add_budget("app-pdb", "app", maxUnavailable=0)
    await budget_counted(cluster, "app-pdb", expectedPods=1)
    request = request_for(node, Step.DRAIN, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(drains(cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, DEADLINE)
    assert "app-pdb needs 1 healthy and has 0" in outcome.detail
    assert "this Pod is down itself" in outcome.detail
    assert await cluster.pods() == {"app"}
    assert len(evictions(cluster)) <= 3
    assert cluster.writes(verb="delete") == []


async def test_r17_two_budgets_block_one_pod_and_no_other(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("gw"))
    await cluster.add_pod(pod_manifest("other"))
    for name in ("pdb-a", "pdb-b"):
        await cluster.add_budget(name, "gw", minAvailable=0)
    request = request_for(node, Step.DRAIN, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(drains(cluster), request)
    assert outcome.reason == DEADLINE
    assert "pdb-a" in outcome.detail
    assert "pdb-b" in outcome.detail
    assert await cluster.pods() == {"gw"}
    assert len([each for each in evictions(cluster) if "/gw/" in each["requestURI"]]) == 1


async def test_r14_every_eviction_carries_the_uid_so_a_moved_pod_is_left_alone(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("web-0", owner="StatefulSet"))
    await cluster.add_budget("web", "web-0", minAvailable=1)
    await budget_counted(cluster, "web", currentHealthy=1)
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("blocked")
    await cluster.raw.delete("/api/v1/namespaces/default/pods/web-0", {"gracePeriodSeconds": 0})
    await cluster.add_pod(pod_manifest("web-0", "n2", owner="StatefulSet"))
    outcome = await drain
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"web-0"}


async def test_r27_a_pod_that_comes_back_unbound_is_not_waited_for(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("es-0", node=None, owner="StatefulSet"))
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert evictions(cluster) == []


async def test_r07_a_cancelled_drain_is_cancelled_and_never_a_success(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("train-0")
    await cluster.add_pod(pod_manifest("train-0"))
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("waiting for 1")
    temporal.env.cancel()
    outcome = await drain
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, INTERRUPTED)


async def test_a_worker_that_stops_is_not_a_cancelled_drain(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("train-0")
    await cluster.add_pod(pod_manifest("train-0"))
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("waiting for 1")
    temporal.env.cancel(ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(asyncio.CancelledError):
        await drain


async def test_r07_a_node_that_has_become_well_is_not_drained_on(cluster, temporal):
    node = await cluster.add_node(faults=())
    await cluster.add_pod(pod_manifest("train-0"))
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, PREMISE_GONE)
    assert evictions(cluster) == []


async def test_r23_no_eviction_follows_the_removal_of_the_hold(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("a")
    await cluster.add_pod(pod_manifest("a"))
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("waiting for 1")
    await cluster.change_node({"spec": {"taints": None}})
    before = len(evictions(cluster))
    await cluster.add_pod(pod_manifest("b"))
    outcome = await drain
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, HOLD_REMOVED)
    assert len(evictions(cluster)) == before


async def test_r30_a_drain_that_starts_again_goes_on_and_its_deadline_does_not(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("a")
    await cluster.add_pod(pod_manifest("a"))
    request = request_for(node, Step.DRAIN, deadline=now() + timedelta(seconds=1))
    first = asyncio.create_task(temporal.run(drains(cluster), request))
    await temporal.heard("waiting for 1")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    outcome = await temporal.run(drains(cluster), request)
    assert outcome.reason == DEADLINE
    assert len(evictions(cluster)) == 1
    late = await temporal.run(drains(cluster), request)
    assert late.reason == DEADLINE


async def test_with_force_the_deadline_deletes_what_is_left_with_its_own_grace(cluster, temporal):
    node = await cluster.add_node()
    guarded = pod_manifest("guarded", terminationGracePeriodSeconds=0)
    guarded["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true"
    await cluster.add_pod(guarded)
    await cluster.add_pod(pod_manifest("web", terminationGracePeriodSeconds=7))
    await cluster.add_budget("web-pdb", "web", maxUnavailable=0)
    await budget_counted(cluster, "web-pdb", expectedPods=1)
    deadline = now() + timedelta(seconds=1)
    request = request_for(node, Step.DRAIN, deadline=deadline, force=True)
    outcome = await temporal.run(drains(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    deletes = cluster.writes(verb="delete")
    assert {each["requestURI"].split("/")[-1] for each in deletes} == {"guarded", "web"}


async def test_a_pod_that_lingers_only_for_its_finalizer_does_not_hold_up_a_drain(
    cluster, temporal
):
    node = await cluster.add_node()
    lingering = pod_manifest("a")
    lingering["metadata"]["finalizers"] = ["example.org/keep"]
    made = await cluster.add_pod(lingering)
    cluster.stuck.add("a")
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("waiting for 1")
    await cluster.set_status(
        made, {"containerStatuses": [status_of({"terminated": {"exitCode": 0}})]}
    )
    outcome = await drain
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert "default/a (stopped" in outcome.detail


async def test_r12_a_new_node_under_the_old_name_is_not_drained(cluster, temporal):
    old = await cluster.add_node()
    await cluster.raw.delete("/api/v1/nodes/n1")
    await cluster.add_node(provider_id="cloud:///i-2")
    await cluster.add_pod(pod_manifest("a"))
    outcome = await temporal.run(drains(cluster), request_for(old, Step.DRAIN))
    assert outcome.kind is OutcomeKind.SUPERSEDED
    assert evictions(cluster) == []


async def test_a_node_that_is_gone_supersedes_its_drain(cluster, temporal):
    node = await cluster.add_node()
    await cluster.raw.delete("/api/v1/nodes/n1")
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert outcome.kind is OutcomeKind.SUPERSEDED


async def test_a_drain_goes_on_when_the_fault_changes_and_conditions_are_renewed(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("a")
    await cluster.add_pod(pod_manifest("a"))
    drain = asyncio.create_task(temporal.run(drains(cluster), request_for(node, Step.DRAIN)))
    await temporal.heard("waiting for 1")
    await cluster.change_node({"status": {"conditions": conditions(replace(FAULT, count=100))}})
    await cluster.raw.delete("/api/v1/namespaces/default/pods/a", {"gracePeriodSeconds": 0})
    assert (await drain).kind is OutcomeKind.SUCCEEDED


async def budget_counted(cluster, name, **expected):
    path = f"/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}"
    async with asyncio.timeout(SOON.total_seconds()):
        while True:
            status = (await cluster.raw.read(path)).get("status") or {}
            if all(status.get(key) == value for key, value in expected.items()):
                return
            await asyncio.sleep(0.01)


LOST = replace(FAULT, name=FaultName.HOST_UNREACHABLE, part=HOST, code="condition:Ready=Unknown")


async def test_r15_an_unreachable_node_and_its_own_budget_are_told_and_not_forced(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(ready="Unknown")
    await quiet_cluster.add_pod(pod_manifest("api-0") | {"status": running(ready=False)})
    await quiet_cluster.add_budget("api", "api-0", minAvailable=1)
    await budget_counted(quiet_cluster, "api", desiredHealthy=1)
    deadline = now() + timedelta(seconds=1)
    request = request_for(node, Step.DRAIN, deadline=deadline, faults=(LOST,))
    outcome = await temporal.run(drains(quiet_cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, DEADLINE)
    assert "api needs 1 healthy and has 0, no replica is healthy" in outcome.detail
    assert "this Pod is down itself" in outcome.detail
    assert quiet_cluster.writes(verb="delete") == []
    assert await quiet_cluster.pods() == {"api-0"}


async def test_r13_even_by_force_a_pod_on_a_silent_node_is_asked_to_stop_and_stays_an_object(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(ready="Unknown")
    await quiet_cluster.add_pod(pod_manifest("db-0", owner="StatefulSet"))
    await quiet_cluster.add_budget("db", "db-0", maxUnavailable=0)
    past = now() - timedelta(minutes=5)
    request = request_for(node, Step.DRAIN, deadline=past, faults=(LOST,), force=True)
    drain = asyncio.create_task(temporal.run(drains(quiet_cluster), request))
    await temporal.heard("terminating")
    temporal.env.cancel()
    assert (await drain).kind is OutcomeKind.CANCELLED
    (pod,) = (await quiet_cluster.raw.read("/api/v1/namespaces/default/pods"))["items"]
    assert pod["metadata"]["deletionGracePeriodSeconds"] >= 1


@pytest.mark.parametrize(
    ("policy", "leaves"), [("AlwaysAllow", True), ("IfHealthyBudget", False), (None, False)]
)
async def test_r16_a_pod_that_is_down_leaves_where_its_budget_says_so(
    cluster, temporal, policy, leaves
):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("app") | {"status": running(ready=False)})
    says = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    await cluster.add_budget("app-pdb", "app", minAvailable=1, **says)
    await budget_counted(cluster, "app-pdb", expectedPods=1)
    deadline = now() + (SOON if leaves else timedelta(milliseconds=500))
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN, deadline=deadline))
    assert (outcome.kind is OutcomeKind.SUCCEEDED) is leaves
    assert await cluster.pods() == (set() if leaves else {"app"})


async def test_r26_the_plan_tells_each_pod_with_its_class_and_reason(cluster, temporal):
    node = await cluster.add_node()
    await mixed_bag(cluster)
    await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    (plan,) = [each for each in temporal.said if each.startswith("plan: ")]
    for line in (
        "default/api-1 (evict)",
        "default/bare-1 (refused: no controller, so it will not come back)",
        "default/cache-1 (refused: its emptyDir would be lost)",
        "default/ds-x (refused: its DaemonSet is gone, so it will not come back)",
        "default/etcd (mirror)",
        "default/job-1 (finished)",
        "default/kube-proxy (daemon)",
        "default/pend-1 (evict: pending)",
    ):
        assert line in plan


async def test_r26_policy_may_let_emptydirs_go_and_nothing_else(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(pod_manifest("cache-1", volumes=[{"name": "v", "emptyDir": {}}]))
    request = request_for(node, Step.DRAIN, lose_scratch=True)
    assert (await temporal.run(drains(cluster), request)).kind is OutcomeKind.SUCCEEDED
    await cluster.add_pod(pod_manifest("bare-1", owner=None))
    outcome = await temporal.run(drains(cluster), request)
    assert outcome.reason == NEEDS_APPROVAL
    assert "bare-1" in outcome.detail


async def test_r10_a_persons_cordon_outlives_a_drain_that_fails(cluster, temporal):
    node = await cluster.add_node(unschedulable=True)
    await cluster.add_pod(pod_manifest("bare-1", owner=None))
    outcome = await temporal.run(drains(cluster), request_for(node, Step.DRAIN))
    assert outcome.kind is OutcomeKind.PERMANENT
    assert (await cluster.node()).unschedulable
    assert cluster.writes() == []
