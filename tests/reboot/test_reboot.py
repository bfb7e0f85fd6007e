"""A reboot is done when the boot id says so, is asked for once, and is never guessed."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.endings import ANOTHER_MACHINE
from activities.no_provider import NoProvider
from activities.operations import Operations
from activities.pinned_pod import PinnedPods
from activities.reboot import NOT_REBOOTED, RebootActivities
from activities.reboot_means import Answer, Asked, FromInside
from fleet.fault import FaultName
from fleet.outcome import OutcomeKind
from fleet.part import HOST
from fleet.reason import BOOT_CHANGED, DEADLINE, INTERRUPTED, NO_MEANS, PREMISE_GONE
from fleet.step import Means, NodeStepResult, Step
from tests.cluster import FAULT, conditions, node_manifest, now, report, request_for

AFTER = {"status": {"nodeInfo": {"bootID": "boot-2"}}}


def reboots(cluster, *means, start_limit=timedelta(seconds=20)):
    pods = PinnedPods(cluster.api, "i", now, start_limit=start_limit)
    ways = means or (FromInside(pods),)
    return RebootActivities(cluster.api, ways, Operations(NoProvider(), now)).reboot


def answers(cluster, result=NodeStepResult.DONE, message=True):
    def on_step(pod):
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        return report(operation, Step.REBOOT, result) if message else None

    cluster.on_step = on_step


def boots(cluster, *patches):
    """The machine goes through these states once its step Pod ran."""

    async def after(pod):
        for patch in patches:
            await cluster.change_node(patch)

    cluster.after_step = after


DOWN = {"status": {"conditions": conditions(FAULT, ready="Unknown")}}
STARTING = {"status": {"conditions": conditions(boot="boot-2", ready="False"), **AFTER["status"]}}
UP = {"status": {"conditions": conditions(boot="boot-2")}}


@pytest.mark.parametrize("message", [True, False], ids=["it answered", "it died with the machine"])
async def test_r36_a_reboot_is_done_when_the_boot_id_changed_and_the_node_is_ready(
    cluster, temporal, message
):
    node = await cluster.add_node()
    answers(cluster, message=message)
    boots(cluster, DOWN, STARTING, UP)
    outcome = await temporal.run(reboots(cluster), request_for(node, Step.REBOOT))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert outcome.boot_id == "boot-2"
    assert len(cluster.writes(verb="create")) == 1


async def test_r30_a_reboot_that_is_taken_up_again_is_never_asked_for_twice(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster, message=False)
    request = request_for(node, Step.REBOOT)
    first = asyncio.create_task(temporal.run(reboots(cluster), request))
    await temporal.heard("rebooting from inside")
    async with (
        asyncio.timeout(20),
        cluster.raw.watch("/api/v1/namespaces/gpumend/pods", resourceVersion="0") as pods,
    ):
        await pods.until("ADDED")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await cluster.change_node(STARTING)
    await cluster.change_node(UP)
    temporal.later_try()
    outcome = await temporal.run(reboots(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    made = [each for each in cluster.writes(verb="create") if each["responseStatus"]["code"] == 201]
    assert len(made) == 1


async def test_a_boot_that_we_did_not_order_is_told_and_not_taken_for_ours(cluster, temporal):
    node = await cluster.add_node(boot="boot-2")
    outcome = await temporal.run(reboots(cluster), request_for(node, Step.REBOOT))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, BOOT_CHANGED)
    assert outcome.boot_id == "boot-2"
    assert cluster.writes() == []


async def test_r02_a_node_that_is_well_is_not_rebooted(cluster, temporal):
    node = await cluster.add_node(faults=())
    outcome = await temporal.run(reboots(cluster), request_for(node, Step.REBOOT))
    assert outcome.reason == PREMISE_GONE
    assert cluster.writes() == []


async def test_a_node_that_refuses_is_not_waited_for(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster, NodeStepResult.REFUSED)
    outcome = await temporal.run(reboots(cluster), request_for(node, Step.REBOOT))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NOT_REBOOTED)


async def test_a_machine_that_was_asked_to_and_did_not_is_told_at_the_deadline(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    request = request_for(node, Step.REBOOT, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(reboots(cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, DEADLINE)


async def test_a_machine_that_went_down_and_is_not_back_is_ambiguous(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    boots(cluster, DOWN)
    request = request_for(node, Step.REBOOT, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(reboots(cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.AMBIGUOUS, DEADLINE)


async def test_a_machine_that_booted_and_does_not_become_ready_has_failed(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    boots(cluster, DOWN, STARTING)
    request = request_for(node, Step.REBOOT, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(reboots(cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, DEADLINE)
    assert outcome.boot_id == "boot-2"


@pytest.mark.parametrize(
    ("provider_id", "kind", "reason"),
    [
        ("cloud:///i-1", OutcomeKind.SUCCEEDED, ""),
        ("cloud:///i-2", OutcomeKind.SUPERSEDED, ANOTHER_MACHINE),
    ],
)
async def test_a_node_object_that_comes_back_is_the_same_machine_or_it_is_not(
    cluster, temporal, provider_id, kind, reason
):
    node = await cluster.add_node()
    answers(cluster)

    async def after(pod):
        await cluster.raw.delete("/api/v1/nodes/n1")
        reborn = node_manifest(boot="boot-2", faults=(), provider_id=provider_id)
        await cluster.raw.created("/api/v1/nodes", reborn)

    cluster.after_step = after
    outcome = await temporal.run(reboots(cluster), request_for(node, Step.REBOOT))
    assert (outcome.kind, outcome.reason) == (kind, reason)
    assert outcome.uid != node.uid


class Other:
    """A way that says what it is told to, and may boot the machine."""

    means = Means.POWER

    def __init__(self, name, answer, act=None, limit=timedelta(milliseconds=300)):
        self.name, self.limit = name, limit
        self.asks = 0
        self._answer, self._act = answer, act

    async def begun(self, request):
        return False

    async def there(self):
        return True

    async def ask(self, request, until, acted):
        self.asks += 1
        acted()
        if self._act:
            await self._act()
        return self._answer


async def test_the_next_means_is_asked_when_one_says_no_or_its_time_is_over(cluster, temporal):
    node = await cluster.add_node()

    async def boot():
        await cluster.change_node({"status": {**AFTER["status"], **UP["status"]}})

    says_no = Other("one", Answer(Asked.NOT_DONE))
    too_late = Other("two", Answer(Asked.UNDER_WAY))
    works = Other("three", Answer(Asked.UNSURE), boot)
    never = Other("four", Answer(Asked.UNDER_WAY))
    activity = reboots(cluster, says_no, too_late, works, never)
    outcome = await temporal.run(activity, request_for(node, Step.REBOOT))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert [each.asks for each in (says_no, too_late, works, never)] == [1, 1, 1, 0]


async def test_an_empty_boot_id_is_a_node_being_written_and_no_boot(cluster, temporal):
    node = await cluster.add_node()
    answers(cluster)
    boots(cluster, {"status": {"nodeInfo": {"bootID": ""}}})
    request = request_for(node, Step.REBOOT, deadline=now() + timedelta(seconds=1))
    outcome = await temporal.run(reboots(cluster), request)
    assert outcome.kind is not OutcomeKind.SUCCEEDED


async def test_a_reboot_that_is_stopped_after_it_was_asked_for_is_ambiguous(cluster, temporal):
    node = await cluster.add_node()
    asked = asyncio.Event()

    async def tell():
        asked.set()

    slow = Other("slow", Answer(Asked.UNDER_WAY), tell, limit=timedelta(seconds=20))
    request = request_for(node, Step.REBOOT)
    task = asyncio.create_task(temporal.run(reboots(cluster, slow), request))
    await asked.wait()
    temporal.env.cancel()
    outcome = await task
    assert (outcome.kind, outcome.reason) == (OutcomeKind.AMBIGUOUS, INTERRUPTED)


async def test_a_pod_that_never_starts_rebooted_nothing(quiet_cluster, temporal):
    node = await quiet_cluster.add_node(ready="False")
    activity = reboots(quiet_cluster, start_limit=timedelta(milliseconds=100))
    outcome = await temporal.run(activity, request_for(node, Step.REBOOT))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NOT_REBOOTED)
    assert "never started" in outcome.detail


async def test_an_unreachable_node_without_means_from_outside_is_left_alone(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(faults=(), ready="Unknown")
    lost = replace(
        FAULT, name=FaultName.HOST_UNREACHABLE, part=HOST, code="condition:Ready=Unknown"
    )
    outcome = await temporal.run(
        reboots(quiet_cluster), request_for(node, Step.REBOOT, faults=(lost,))
    )
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, NO_MEANS)
    assert quiet_cluster.writes() == []
