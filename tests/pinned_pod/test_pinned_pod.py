"""Steps on a node by Pods bound to it: once an operation, and never a report that nobody saw."""

from datetime import timedelta

import pytest

from activities.pinned_pod import (
    KEPT_PODS,
    NoReport,
    PinnedPods,
    Trouble,
    step_pods,
    tidy,
    unfinished,
)
from activities.pod_manifest import (
    HANDED_ON,
    command,
    has_ended,
    has_started,
    pod_name,
    step_pod,
)
from fleet.part import Part
from fleet.step import NodeStepReport, NodeStepRequest, NodeStepResult, Step
from probes.checks import dcgm_diag, dcgm_engine
from simulator.apiserver.injection import Fault as Trouble_
from tests.cluster import (
    BOOT,
    INCIDENT,
    now,
    pod_manifest,
    report,
    rfc,
    running,
    status_of,
    stopped,
)

OPERATION = f"{INCIDENT}-3-verify"


def asked(**changes):
    about = {
        "operation": OPERATION,
        "incident": INCIDENT,
        "step": Step.VERIFY,
        "boot_id": BOOT,
        "not_after": now() + timedelta(seconds=20),
        **changes,
    }
    return NodeStepRequest(**about)


def pods_of(cluster, start_limit=timedelta(seconds=20)):
    return PinnedPods(cluster.api, "image:1", now, start_limit=start_limit)


def answers(cluster, **about):
    def on_step(pod):
        labels = pod["metadata"]["labels"]
        step = Step(labels["gpumend.io/step"])
        return report(labels["gpumend.io/operation"], step, **about)

    cluster.on_step = on_step


def test_the_pod_is_bound_tolerates_everything_and_requests_nothing():
    at = now()
    request = asked(not_after=at + timedelta(seconds=100))
    spec = step_pod(request, "n1", "image:1", at)["spec"]
    assert spec["nodeName"] == "n1"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["restartPolicy"] == "Never"
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 130
    assert "resources" not in spec["containers"][0]


def test_what_a_worker_is_told_for_the_nodes_is_handed_on_and_nothing_else():
    said = {"GPUMEND_DCGM_DIAG_LEVEL": "2", "GPUMEND_PROVIDER_TOKEN": "secret"}
    (container,) = step_pod(asked(), "n1", "i", now(), said)["spec"]["containers"]
    assert container["env"] == [{"name": "GPUMEND_DCGM_DIAG_LEVEL", "value": "2"}]
    assert {dcgm_diag.LEVEL, dcgm_engine.ADDRESS} == set(HANDED_ON)


def test_a_pod_whose_time_is_over_still_gets_the_time_to_say_so():
    request = asked(not_after=now() - timedelta(hours=1))
    assert step_pod(request, "n1", "i", now())["spec"]["activeDeadlineSeconds"] == 30


def test_the_pod_is_told_everything_it_must_check_itself():
    request = asked(
        not_after=now().replace(microsecond=0), parts=(Part("gpu:3"),), checks=("pci", "memory")
    )
    assert command(request) == [
        *("gpumend", "node-step", "verify"),
        *("--operation", OPERATION),
        *("--incident", INCIDENT),
        *("--boot-id", BOOT),
        *("--not-after", rfc(request.not_after)),
        *("--root", "/host"),
        *("--result", "/dev/termination-log"),
        *("--part", "gpu:3"),
        *("--check", "pci"),
        *("--check", "memory"),
    ]


WAITING = {"phase": "Pending", "containerStatuses": [status_of({"waiting": {"reason": "x"}})]}


@pytest.mark.parametrize(
    ("status", "started", "ended"),
    [
        ({}, False, False),
        ({"phase": "Pending"}, False, False),
        (WAITING, False, False),
        (running(), True, False),
        (stopped(), True, True),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, True, True),
    ],
)
def test_a_pods_status_tells_whether_it_began_and_whether_it_ended(status, started, ended):
    assert (has_started({"status": status}), has_ended({"status": status})) == (started, ended)


async def test_a_step_is_run_and_its_report_is_read(cluster):
    answers(cluster)
    found = await pods_of(cluster).run(asked(), "n1")
    assert isinstance(found, NodeStepReport)
    assert found.result is NodeStepResult.DONE


async def test_asking_again_finds_the_pod_instead_of_making_another(cluster):
    answers(cluster)
    first = await pods_of(cluster).run(asked(), "n1")
    second = await pods_of(cluster).run(asked(), "n1")
    assert first == second
    made = [each for each in cluster.writes(verb="create") if each["responseStatus"]["code"] == 201]
    assert len(made) == 1


async def test_a_pod_whose_creation_was_not_answered_is_not_made_twice(cluster):
    answers(cluster)
    cluster.server.faults.order(Trouble_(verb="create", path="/pods", drop=True))
    found = await pods_of(cluster).run(asked(), "n1")
    assert isinstance(found, NodeStepReport)
    assert await cluster.pods("gpumend") == {pod_name(OPERATION)}


async def test_a_pod_that_never_starts_is_taken_away_and_did_nothing(quiet_cluster):
    found = await pods_of(quiet_cluster, timedelta(milliseconds=100)).run(asked(), "n1")
    assert isinstance(found, NoReport)
    assert found.trouble is Trouble.NEVER_STARTED
    pods = await quiet_cluster.raw.read("/api/v1/namespaces/gpumend/pods")
    assert all("deletionTimestamp" in each["metadata"] for each in pods["items"])


async def test_a_pod_that_starts_while_it_is_taken_away_is_waited_for(cluster):
    """Its start comes in between the limit and the look that decides."""
    cluster.on_step = None
    get = cluster.api.get

    async def start_then_get(path):
        pod = await get(path)
        await cluster.set_status(pod, stopped(report(OPERATION, Step.VERIFY)))
        return await get(path)

    cluster.api.get = start_then_get
    found = await pods_of(cluster, timedelta(milliseconds=50)).run(asked(), "n1")
    assert isinstance(found, NodeStepReport)


async def test_a_pod_that_is_deleted_before_it_reports_is_lost(cluster):
    cluster.on_step = lambda pod: None

    async def delete(pod):
        path = f"/api/v1/namespaces/gpumend/pods/{pod['metadata']['name']}"
        await cluster.raw.delete(path, {"gracePeriodSeconds": 0})

    cluster.after_step = delete
    found = await pods_of(cluster).run(asked(), "n1")
    assert isinstance(found, NoReport)
    assert found.trouble is Trouble.LOST


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        '{"operation": "x"}',
        report("another", Step.VERIFY),
        report(OPERATION, Step.REBOOT),
    ],
)
async def test_a_report_that_is_not_this_steps_is_no_report(cluster, message):
    cluster.on_step = lambda pod: message
    found = await pods_of(cluster).run(asked(), "n1")
    assert isinstance(found, NoReport)
    assert found.trouble is Trouble.UNREADABLE


async def test_a_pod_of_that_name_on_another_node_is_foreign(cluster):
    answers(cluster)
    await pods_of(cluster).run(asked(), "n2")
    found = await pods_of(cluster).run(asked(), "n1")
    assert isinstance(found, NoReport)
    assert found.trouble is Trouble.FOREIGN


async def test_old_pods_are_tidied_and_the_newest_are_kept_for_their_logs(cluster):
    answers(cluster)
    for number in range(KEPT_PODS + 3):
        await pods_of(cluster).run(asked(operation=f"op-{number}"), "n1")
    elsewhere = pod_manifest("elsewhere", "n2", owner=None, namespace="gpumend")
    await cluster.add_pod(elsewhere | {"status": stopped()})
    await tidy(cluster.api, await step_pods(cluster.api, "n1"))
    left = await cluster.pods("gpumend")
    assert "elsewhere" in left
    assert len(left) == KEPT_PODS + 1


async def test_a_tidying_that_is_refused_is_left_for_later(cluster):
    answers(cluster)
    for number in range(KEPT_PODS + 1):
        await pods_of(cluster).run(asked(operation=f"op-{number}"), "n1")
    cluster.server.faults.order(Trouble_(verb="delete", path="/gpumend/pods", code=403))
    await tidy(cluster.api, await step_pods(cluster.api, "n1"))
    assert len(await cluster.pods("gpumend")) == KEPT_PODS + 1


async def test_a_step_that_has_not_ended_is_unfinished(quiet_cluster):
    pod = pod_manifest("step-x", owner=None, namespace="gpumend")
    pod["metadata"]["labels"] = {"gpumend.io/operation": "x"}
    made = await quiet_cluster.add_pod(pod)
    assert unfinished(await step_pods(quiet_cluster.api, "n1")) == ("step-x",)
    await quiet_cluster.set_status(made, stopped())
    assert unfinished(await step_pods(quiet_cluster.api, "n1")) == ()
