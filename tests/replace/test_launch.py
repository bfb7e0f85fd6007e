"""A successor is launched once an incident, and believed when its node is Ready and whole."""

import asyncio
from datetime import timedelta

import pytest

from activities.launch import LAUNCH_FAILED, SUCCESSOR_SICK, LaunchActivities
from fleet.outcome import OutcomeKind
from fleet.reason import DEADLINE, NO_MEANS
from fleet.step import Step
from simulator.provider import Fault
from tests.cluster import mark, now, request_for
from tests.provider.machines import provider_in


def launches(cluster, server):
    return LaunchActivities(cluster.api, server.operations).launch


async def joins(cluster, **about):
    about.setdefault("taints", [])
    return await cluster.add_node(
        name="n1-next", provider_id="cloud:///i-9", faults=(), **{"marked": None, **about}
    )


async def test_a_successor_that_is_ready_is_a_success(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node(marked=mark(offered=("nvidia.com/gpu=8",)))
    await joins(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        outcome = await temporal.run(
            launches(quiet_cluster, server), request_for(node, Step.LAUNCH)
        )
        assert server.machines.asked == ["launch"]
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert "n1-next" in outcome.detail


@pytest.mark.parametrize(
    "about",
    [{"ready": "False"}, {"gpus": 7}, {"unschedulable": True}],
    ids=["not ready", "fewer GPUs", "cordoned"],
)
async def test_what_is_not_ready_or_not_whole_is_waited_for(
    quiet_cluster, temporal, tmp_path, about
):
    node = await quiet_cluster.add_node(marked=mark(offered=("nvidia.com/gpu=8",)))
    await joins(quiet_cluster, **about)
    request = request_for(node, Step.LAUNCH, deadline=now() + timedelta(milliseconds=500))
    async with provider_in(tmp_path, quiet_cluster) as server:
        outcome = await temporal.run(launches(quiet_cluster, server), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.AMBIGUOUS, DEADLINE)


async def test_a_successor_that_is_held_itself_is_none(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    await joins(quiet_cluster, marked=mark())
    async with provider_in(tmp_path, quiet_cluster) as server:
        outcome = await temporal.run(
            launches(quiet_cluster, server), request_for(node, Step.LAUNCH)
        )
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, SUCCESSOR_SICK)


async def test_r30_one_incident_launches_one_machine_however_often_it_asks(
    quiet_cluster, temporal, tmp_path
):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", lost=True))
        activity = launches(quiet_cluster, server)
        first = asyncio.create_task(temporal.run(activity, request_for(node, Step.LAUNCH)))
        await temporal.heard("waiting for n1-next")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await joins(quiet_cluster)
        again = request_for(node, Step.LAUNCH, operation="another-step")
        assert (await temporal.run(activity, again)).kind is OutcomeKind.SUCCEEDED
        assert server.machines.asked == ["launch"]


async def test_short_capacity_fails_and_may_be_asked_for_again(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    await joins(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster) as server:
        server.faults.order(Fault(method="PUT", fail="capacity"))
        activity = launches(quiet_cluster, server)
        outcome = await temporal.run(activity, request_for(node, Step.LAUNCH))
        assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, LAUNCH_FAILED)
        assert "capacity" in outcome.detail
        again = await temporal.run(activity, request_for(node, Step.LAUNCH))
        assert again.kind is OutcomeKind.SUCCEEDED


async def test_a_provider_that_launches_nothing_is_no_means(quiet_cluster, temporal, tmp_path):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster, ("terminate",)) as server:
        outcome = await temporal.run(
            launches(quiet_cluster, server), request_for(node, Step.LAUNCH)
        )
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NO_MEANS)
