"""A machine is replaced when it is gone, by whoever owns it, and asked for once."""

import asyncio
from datetime import timedelta

import pytest

from activities import operations as waiting
from activities.no_provider import NoProvider
from activities.operations import Operations
from activities.replace import ReplaceActivities
from activities.replace_ways import REPLACE_FAILED, ByNodeClaim, ByTermination
from fleet.outcome import OutcomeKind
from fleet.reason import BUSY_ELSEWHERE, DEADLINE, NEEDS_APPROVAL, NO_MEANS, PREMISE_GONE
from fleet.step import Step
from simulator.provider import Fault
from tests.cluster import LOST, conditions, now, request_for
from tests.means.karpenter import CLAIMS, add_claim, define_node_claims, terminate
from tests.provider.machines import provider_in

DEAD = {"status": {"conditions": conditions(ready="Unknown")}}


def replaces(cluster, operations):
    ways = (ByNodeClaim(cluster.api, now), ByTermination(cluster.api, operations, now))
    return ReplaceActivities(cluster.api, ways).replace


def nobody():
    return Operations(NoProvider(), now)


def dies_with_its_machine(server, cluster):
    """The kubelet of a machine that is terminated is silent from then on."""
    change = server.machines.change

    async def then_silent(operation):
        successor = await change(operation)
        await cluster.change_node(DEAD)
        return successor

    server.machines.change = then_silent


async def test_a_terminated_machine_takes_its_node_object_along(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        dies_with_its_machine(server, quiet_cluster)
        activity = replaces(quiet_cluster, server.operations)
        outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["terminate"]
    assert (await quiet_cluster.raw.get("/api/v1/nodes/n1")).status_code == 404
    (deletion,) = quiet_cluster.writes(verb="delete")
    assert deletion["requestURI"].endswith("/nodes/n1")


@pytest.mark.parametrize("fault", [Fault(method="PUT", lost=True), Fault(method="PUT", code=500)])
async def test_r19_a_lost_answer_terminates_one_machine_once(
    quiet_cluster, temporal, tmp_path, fault
):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        dies_with_its_machine(server, quiet_cluster)
        server.faults.order(fault)
        activity = replaces(quiet_cluster, server.operations)
        outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["terminate"]


async def test_r30_a_replace_that_is_taken_up_again_goes_on_without_its_node(
    quiet_cluster, temporal, tmp_path
):
    """The provider's controller has deleted the Node meanwhile; the operation knows the machine."""
    node = await quiet_cluster.add_node()
    request = request_for(node, Step.REPLACE)
    async with provider_in(tmp_path, quiet_cluster) as server:
        dies_with_its_machine(server, quiet_cluster)
        activity = replaces(quiet_cluster, server.operations)
        first = asyncio.create_task(temporal.run(activity, request))
        await temporal.heard("takes the machine back")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await quiet_cluster.raw.delete("/api/v1/nodes/n1")
        outcome = await temporal.run(activity, request)
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked.count("terminate") == 1


async def test_r12_the_node_of_another_machine_under_the_name_is_left_alone(
    quiet_cluster, temporal, tmp_path
):
    old = await quiet_cluster.add_node()
    request = request_for(old, Step.REPLACE)
    async with provider_in(tmp_path, quiet_cluster) as server:
        change = server.machines.change

        async def comes_again(operation):
            await change(operation)
            await quiet_cluster.raw.delete("/api/v1/nodes/n1")
            await quiet_cluster.add_node(provider_id="cloud:///i-2")
            return ""

        server.machines.change = comes_again
        activity = replaces(quiet_cluster, server.operations)
        assert (await temporal.run(activity, request)).kind is OutcomeKind.SUCCEEDED
    assert (await quiet_cluster.node()).identity.uid != old.uid


async def test_a_live_kubelet_outranks_a_provider_that_says_gone(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    request = request_for(node, Step.REPLACE, deadline=now() + timedelta(milliseconds=500))
    async with provider_in(tmp_path, quiet_cluster, power="gone") as server:
        outcome = await temporal.run(replaces(quiet_cluster, server.operations), request)
        assert server.machines.asked == []
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NEEDS_APPROVAL)
    assert quiet_cluster.writes() == []


async def test_a_provider_that_says_no_is_quoted(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", fail="protected"))
        activity = replaces(quiet_cluster, server.operations)
        outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, REPLACE_FAILED)
    assert "protected" in outcome.detail


async def test_a_silent_provider_leads_to_a_question(
    quiet_cluster, temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(waiting, "PATIENCE", timedelta(milliseconds=20))
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(path="/v1/operations", code=503, times=1_000))
        activity = replaces(quiet_cluster, server.operations)
        outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
        assert server.machines.asked == []
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NEEDS_APPROVAL)


async def test_without_provider_and_claim_there_are_no_means(quiet_cluster, temporal):
    node = await quiet_cluster.add_node()
    activity = replaces(quiet_cluster, nobody())
    outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NO_MEANS)


async def test_a_node_that_is_well_is_not_replaced(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node(faults=())
    async with provider_in(tmp_path, quiet_cluster) as server:
        activity = replaces(quiet_cluster, server.operations)
        outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
        assert server.machines.asked == []
    assert outcome.reason == PREMISE_GONE


async def claim_deleted(cluster):
    async with cluster.raw.watch(CLAIMS, resourceVersion="0") as claims:
        while True:
            _, claim = await claims.next()
            if "deletionTimestamp" in claim["metadata"]:
                return claim


async def test_a_node_of_karpenters_is_replaced_by_deleting_its_claim(
    quiet_cluster, temporal, tmp_path
):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node(faults=(), ready="Unknown")
    await add_claim(quiet_cluster)
    request = request_for(node, Step.REPLACE, faults=(LOST,))
    async with provider_in(tmp_path, quiet_cluster) as server:
        activity = replaces(quiet_cluster, server.operations)
        replacing = asyncio.create_task(temporal.run(activity, request))
        claim = await claim_deleted(quiet_cluster)
        assert claim["metadata"]["annotations"]["gpumend.io/operation"] == request.operation
        await terminate(quiet_cluster)
        outcome = await replacing
        assert server.machines.asked == []
    assert outcome.kind is OutcomeKind.SUCCEEDED
    (deletion,) = quiet_cluster.writes(verb="delete")
    assert "nodeclaims" in deletion["requestURI"]


async def test_r30_a_claim_that_we_delete_is_found_again_and_deleted_once(quiet_cluster, temporal):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node()
    await add_claim(quiet_cluster)
    request = request_for(node, Step.REPLACE)
    activity = replaces(quiet_cluster, nobody())
    first = asyncio.create_task(temporal.run(activity, request))
    await claim_deleted(quiet_cluster)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    again = asyncio.create_task(temporal.run(activity, request))
    await temporal.heard("takes the machine of NodeClaim")
    await terminate(quiet_cluster)
    assert (await again).kind is OutcomeKind.SUCCEEDED
    assert len(quiet_cluster.writes(verb="delete")) == 1


async def test_r30_a_later_try_finds_node_and_claim_gone(quiet_cluster, temporal):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node()
    await quiet_cluster.raw.delete("/api/v1/nodes/n1")
    activity = replaces(quiet_cluster, nobody())
    request = request_for(node, Step.REPLACE)
    assert (await temporal.run(activity, request)).kind is OutcomeKind.SUPERSEDED
    temporal.later_try()
    assert (await temporal.run(activity, request)).kind is OutcomeKind.SUCCEEDED


async def test_a_claim_that_somebody_else_deletes_is_his(quiet_cluster, temporal):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node()
    await add_claim(quiet_cluster)
    await quiet_cluster.raw.delete(f"{CLAIMS}/claim-1")
    activity = replaces(quiet_cluster, nobody())
    outcome = await temporal.run(activity, request_for(node, Step.REPLACE))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, BUSY_ELSEWHERE)
    assert quiet_cluster.writes() == []


async def test_a_claim_that_stays_is_ambiguous_at_the_deadline(quiet_cluster, temporal):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node()
    await add_claim(quiet_cluster)
    request = request_for(node, Step.REPLACE, deadline=now() + timedelta(milliseconds=500))
    outcome = await temporal.run(replaces(quiet_cluster, nobody()), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.AMBIGUOUS, DEADLINE)
