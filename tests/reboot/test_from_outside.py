"""Reboots from outside: by the provider or its power, on two witnesses, each asked for once."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities import operations as waiting
from activities.out_of_service import OutOfService
from activities.pinned_pod import PinnedPods
from activities.reboot import MACHINE_GONE, NOT_REBOOTED, RebootActivities
from activities.reboot_means import ByPower, ByProvider, FromInside
from fleet.errors import Transient
from fleet.machine import Change, MachineAddress
from fleet.outcome import OutcomeKind
from fleet.reason import NEEDS_APPROVAL, PAUSED, PREMISE_GONE
from fleet.step import Step
from simulator.provider import Fault
from tests.cluster import LOST, conditions, mark, now, pod_manifest, request_for, running
from tests.provider.machines import provider_in

TWO_CALLS = ("stop", "start")
TAINT = "node.kubernetes.io/out-of-service"
LONG_AGO = timedelta(hours=1)
BRIEF = timedelta(milliseconds=50)


def reboots(cluster, server, clean_up=timedelta(seconds=5)):
    inside = FromInside(PinnedPods(cluster.api, "i", now, start_limit=BRIEF))
    off = OutOfService(cluster.api, server.operations, now, limit=clean_up)
    by_provider = ByProvider(cluster.api, server.operations, now, clean_up=off)
    ways = (inside, by_provider, ByPower(cluster.api, server.operations))
    return RebootActivities(cluster.api, ways, server.operations).reboot


async def silent_node(cluster):
    node = await cluster.add_node(faults=(), ready="Unknown")
    await cluster.renew_kubelet_lease("n1", now() - LONG_AGO)
    return node, request_for(node, Step.REBOOT, faults=(LOST,))


async def test_a_silent_node_is_rebooted_by_its_provider_without_a_pod(
    quiet_cluster, temporal, tmp_path
):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert (outcome.kind, outcome.boot_id) == (OutcomeKind.SUCCEEDED, "boot-2")
        assert server.machines.asked == ["restart"]
    assert quiet_cluster.writes() == []


async def test_a_node_that_answers_and_whose_pod_does_nothing_is_rebooted_by_its_provider(
    quiet_cluster, temporal, tmp_path
):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        activity = reboots(quiet_cluster, server)
        outcome = await temporal.run(activity, request_for(node, Step.REBOOT))
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["restart"]


@pytest.mark.parametrize("lost", ["restart$", ""], ids=["the change's", "every first answer"])
async def test_r19_a_lost_answer_is_looked_for_and_never_asked_for_again(
    quiet_cluster, temporal, tmp_path, lost
):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", path=lost, lost=True))
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["restart"]


async def test_a_restart_that_fails_is_followed_by_a_power_cycle(quiet_cluster, temporal, tmp_path):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", path="restart$", fail="agent-away"))
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["power-cycle"]


async def answers_again(cluster):
    """Its network is back; it never booted, and its jobs run on."""
    await cluster.change_node({"status": {"conditions": conditions(ready="True")}})


async def people_keep_it(cluster):
    await cluster.change_node({"metadata": {"annotations": {"gpumend.io/pause": "mine"}}})


@pytest.mark.parametrize(
    ("meanwhile", "reason"), [(answers_again, PREMISE_GONE), (people_keep_it, PAUSED)]
)
async def test_before_the_next_means_it_is_looked_again(
    quiet_cluster, temporal, tmp_path, meanwhile, reason
):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", path="restart$", fail="agent-away"))
        begin = server.operations.begin

        async def refuse(*asked):
            await meanwhile(quiet_cluster)
            return await begin(*asked)

        server.operations.begin = refuse
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, reason)
        assert server.machines.asked == []


@pytest.mark.parametrize("power", ["gone", "unknown"])
async def test_r15_without_the_providers_word_a_silent_node_is_a_persons(
    quiet_cluster, temporal, tmp_path, power
):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster, power=power) as server:
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert server.machines.asked == []
    reason = MACHINE_GONE if power == "gone" else NEEDS_APPROVAL
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, reason)
    assert "n1" in outcome.detail


async def test_r15_a_provider_that_falls_silent_between_the_witness_and_the_call_is_a_persons(
    quiet_cluster, temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(waiting, "PATIENCE", timedelta(milliseconds=20))
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster, ("restart",)) as server:
        server.faults.order(Fault(path="/v1/operations", code=503, times=1_000))
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert server.machines.asked == []
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NEEDS_APPROVAL)


async def test_a_later_try_does_not_guess_what_an_earlier_one_began(
    quiet_cluster, temporal, tmp_path
):
    _, request = await silent_node(quiet_cluster)
    temporal.later_try()
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(path="/v1/operations", code=503, times=1_000))
        with pytest.raises(ApplicationError, match="whether it was begun") as raised:
            await temporal.run(reboots(quiet_cluster, server), request)
        assert raised.value.type == Transient.__name__
        assert server.machines.asked == []


async def test_a_node_whose_kubelet_renews_its_lease_is_not_silent(
    quiet_cluster, temporal, tmp_path
):
    """Not Ready is no death: it is asked from inside first."""
    node = await quiet_cluster.add_node(faults=(), ready="Unknown")
    await quiet_cluster.renew_kubelet_lease("n1")
    request = request_for(node, Step.REBOOT, faults=(LOST,))
    async with provider_in(tmp_path, quiet_cluster, ()) as server:
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
    assert outcome.reason == NOT_REBOOTED
    assert len(quiet_cluster.writes(verb="create", path="/pods")) == 1


async def test_r30_a_crash_between_stop_and_start_is_followed_by_the_start_alone(
    quiet_cluster, temporal, tmp_path
):
    _, request = await silent_node(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster, TWO_CALLS) as server:
        machine = MachineAddress("n1", "cloud:///i-1", "s1")
        stop = await server.provider.begin(f"{request.operation}-stop", Change.STOP, machine)
        await server.operations.ended(stop, now() + timedelta(seconds=5))
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["stop", "start"]


async def test_a_machine_that_we_stopped_is_started_even_if_we_are_told_to_stop(
    quiet_cluster, temporal, tmp_path
):
    _, request = await silent_node(quiet_cluster)
    await quiet_cluster.add_pod(pod_manifest("stays"))
    async with provider_in(tmp_path, quiet_cluster, TWO_CALLS) as server:
        task = asyncio.create_task(
            temporal.run(reboots(quiet_cluster, server, timedelta(seconds=20)), request)
        )
        async with quiet_cluster.raw.watch("/api/v1/nodes", resourceVersion="0") as nodes:
            while not taints(await nodes.until("MODIFIED", "n1")):
                pass
        temporal.env.cancel()
        assert (await task).kind is OutcomeKind.AMBIGUOUS
        start = await server.operations.find(f"{request.operation}-start")
        assert start is not None
    assert not taints(await quiet_cluster.raw.read("/api/v1/nodes/n1"))


def taints(manifest):
    return [each for each in manifest["spec"].get("taints", ()) if each["key"] == TAINT]


async def collect_garbage(cluster, seen):
    """What Kubernetes does about the pods of a node that carries the taint."""
    async with cluster.raw.watch("/api/v1/nodes", resourceVersion="0") as nodes:
        while True:
            node = await nodes.until("MODIFIED", "n1")
            if taints(node):
                seen.append("taint on")
                await cluster.raw.delete(
                    "/api/v1/namespaces/default/pods/db-0", {"gracePeriodSeconds": 0}
                )
            elif seen:
                seen.append("taint off")
                return


async def test_r13_pods_leave_a_silent_node_by_the_taint_and_only_while_it_is_proven_off(
    quiet_cluster, temporal, tmp_path
):
    _, request = await silent_node(quiet_cluster)
    await quiet_cluster.add_pod(pod_manifest("db-0", owner="StatefulSet"))
    seen: list[str] = []
    garbage = asyncio.create_task(collect_garbage(quiet_cluster, seen))
    async with provider_in(tmp_path, quiet_cluster, TWO_CALLS) as server:
        change = server.machines.change

        async def noted(operation):
            seen.append(operation["change"])
            return await change(operation)

        server.machines.change = noted
        outcome = await temporal.run(reboots(quiet_cluster, server), request)
    await garbage
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert seen == ["stop", "taint on", "taint off", "start"]
    assert await quiet_cluster.pods() == set()
    assert quiet_cluster.writes(verb="delete") == []
    assert (await quiet_cluster.node()).mark.undo == mark().undo


@pytest.mark.parametrize(
    ("ready", "lease_age", "power"),
    [
        ("True", timedelta(0), "off"),
        ("True", LONG_AGO, "off"),
        ("Unknown", timedelta(0), "off"),
        ("Unknown", LONG_AGO, "on"),
        ("Unknown", LONG_AGO, "unknown"),
    ],
)
async def test_r31_the_taint_is_refused_unless_kubelet_and_provider_both_say_off(
    quiet_cluster, tmp_path, ready, lease_age, power
):
    node = await quiet_cluster.add_node(ready=ready)
    await quiet_cluster.renew_kubelet_lease("n1", now() - lease_age)
    await quiet_cluster.add_pod(pod_manifest("db-0") | {"status": running(ready=False)})
    async with provider_in(tmp_path, quiet_cluster, power=power) as server:
        taint = OutOfService(quiet_cluster.api, server.operations, now)
        said = await taint.clean(request_for(node, Step.REBOOT), MachineAddress("n1"))
    assert "left alone" in said
    assert quiet_cluster.writes() == []


async def test_r31_what_does_not_leave_is_named_and_the_taint_still_comes_off(
    quiet_cluster, temporal, tmp_path
):
    node, _ = await silent_node(quiet_cluster)
    await quiet_cluster.add_pod(pod_manifest("db-0"))
    async with provider_in(tmp_path, quiet_cluster, power="off") as server:
        taint = OutOfService(quiet_cluster.api, server.operations, now, limit=BRIEF)
        said = await taint.clean(request_for(node, Step.REBOOT), MachineAddress("n1"))
    assert "default/db-0" in said
    assert not taints(await quiet_cluster.raw.read("/api/v1/nodes/n1"))
