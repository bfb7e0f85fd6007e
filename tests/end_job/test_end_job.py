"""One job's pods leave the node, and only when it is known whose they are."""

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.drain import DrainActivities
from activities.end_job import WHICH_JOB, EndJobActivities
from activities.hit import hit_by
from activities.jobs import Job, job_of, sick_job
from activities.sick_gpus import SickGpus
from fleet.fault import FaultName
from fleet.outcome import OutcomeKind
from fleet.reason import DEADLINE, PREMISE_GONE
from fleet.step import Step
from probes.parts import keyed_id
from tests.cluster import (
    FAULT,
    conditions,
    identity,
    now,
    pod_manifest,
    request_for,
    running,
    seen_node,
)

KEY = b"a key of 32 bytes, more or less."
SICK, WELL = "GPU-00000000-0000-0000-0000-000000000003", "GPU-00000000-0000-0000-0000-000000000004"
GPU = [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
LABELS = ("gpumend.io/job", "batch.kubernetes.io/job-name")
KNOWN = replace(FAULT, id=keyed_id(KEY, SICK))


def ends(cluster):
    return EndJobActivities(
        cluster.api, settle=timedelta(milliseconds=50), jitter=lambda: 0.0
    ).end_job


def request(node, **changes):
    return request_for(node, Step.END_JOB, **{"job_labels": LABELS, **changes})


def rank(name, job, *devices):
    made = pod_manifest(name, containers=GPU)
    made["metadata"]["labels"] |= {"gpumend.io/job": job} if job else {}
    if devices:
        made["status"] = given(*devices)
    return made


def given(*devices):
    status = running()
    resources = [{"resourceID": each, "health": "Healthy"} for each in devices]
    said = [{"name": "nvidia.com/gpu", "resources": resources}]
    status["containerStatuses"][0]["allocatedResourcesStatus"] = said
    return status


async def add_key(cluster):
    secret = {
        "metadata": {"name": "gpumend-part-key", "namespace": "gpumend"},
        "data": {"key": base64.b64encode(KEY + b"\n").decode()},
    }
    await cluster.raw.created("/api/v1/namespaces/gpumend/secrets", secret)


async def test_the_only_gpu_job_leaves_and_nobody_else(cluster, temporal):
    node = await cluster.add_node()
    for each in (rank("a-0", "a"), rank("a-1", "a"), pod_manifest("web")):
        await cluster.add_pod(each)
    await cluster.add_pod(rank("elsewhere", "a") | {"spec": {"nodeName": "n2", "containers": GPU}})
    outcome = await temporal.run(ends(cluster), request(node))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"web", "elsewhere"}


async def test_of_two_jobs_the_one_that_holds_the_sick_gpu_leaves(cluster, temporal):
    node = await cluster.add_node()
    await add_key(cluster)
    await cluster.add_pod(rank("a-0", "a", WELL))
    await cluster.add_pod(rank("b-0", "b", SICK))
    outcome = await temporal.run(ends(cluster), request(node, faults=(KNOWN,)))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"a-0"}


async def test_r30_once_the_job_is_gone_no_other_follows_it(cluster, temporal):
    """Taken up again after the sick GPU's job has left: the one that is left holds another."""
    node = await cluster.add_node()
    await add_key(cluster)
    await cluster.add_pod(rank("a-0", "a", WELL))
    outcome = await temporal.run(ends(cluster), request(node, faults=(KNOWN,)))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"a-0"}
    assert cluster.writes() == []


@pytest.mark.parametrize("other", ["b", ""], ids=["two jobs", "a pod without a job"])
async def test_where_it_cannot_be_told_whose_job_it_is_nothing_leaves(cluster, temporal, other):
    node = await cluster.add_node()
    await cluster.add_pod(rank("a-0", "a"))
    await cluster.add_pod(rank("x-0", other))
    outcome = await temporal.run(ends(cluster), request(node))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, WHICH_JOB)
    assert "default/a-0 (job default/a)" in outcome.detail
    assert "default/x-0" in outcome.detail
    assert cluster.writes() == []


HITTING = replace(FAULT, name=FaultName.CONTAINED_MEMORY, code="xid:94")
"""A fault that struck one process."""


async def two_jobs(cluster):
    """A node with a pod of job a and one of job b; their UIDs."""
    node = await cluster.add_node(faults=())
    made = [await cluster.add_pod(rank(f"{each}-0", each)) for each in "ab"]
    return node, *(each["metadata"]["uid"] for each in made)


async def sick_with(cluster, *faults):
    await cluster.change_node({"status": {"conditions": conditions(*faults)}})


async def test_of_two_jobs_the_one_that_was_hit_leaves(cluster, temporal):
    """The node says so just now; the request is of before anybody knew."""
    node, _, hit = await two_jobs(cluster)
    await sick_with(cluster, replace(HITTING, pods=(hit,)))
    outcome = await temporal.run(ends(cluster), request(node, faults=(HITTING,)))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"a-0"}


async def test_once_the_pod_that_was_hit_is_gone_nobody_follows_it(cluster, temporal):
    node, *_ = await two_jobs(cluster)
    await sick_with(cluster, replace(HITTING, pods=(GONE,)))
    outcome = await temporal.run(ends(cluster), request(node, faults=(HITTING,)))
    assert (outcome.kind, outcome.detail) == (
        OutcomeKind.SUCCEEDED,
        "no pod that was hit is left",
    )
    assert cluster.writes() == []


async def test_where_two_jobs_were_hit_nobody_leaves(cluster, temporal):
    node, *both = await two_jobs(cluster)
    await sick_with(cluster, replace(HITTING, pods=tuple(both)))
    outcome = await temporal.run(ends(cluster), request(node, faults=(HITTING,)))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, WHICH_JOB)
    assert cluster.writes() == []


GONE = "11111111-2222-3333-4444-555555555555"
UID_A, UID_B = f"{GONE[:-1]}a", f"{GONE[:-1]}b"
A, B = (rank(each, each) | {"spec": {"containers": GPU}} for each in "ab")
A["metadata"]["uid"], B["metadata"]["uid"] = UID_A, UID_B


@pytest.mark.parametrize(
    ("faults", "said", "ended"),
    [
        ((replace(HITTING, pods=(UID_A,)),), (), ["a"]),
        ((replace(HITTING, pods=(UID_A,)),), (replace(HITTING, pods=(GONE, UID_B)),), ["b"]),
        ((HITTING,), (), "ab"),
        ((replace(HITTING, pods=(UID_A,)), FAULT), (), ["a"]),
        ((replace(FAULT, pods=(UID_B,)),), (), ["b"]),
        ((replace(FAULT, pods=(GONE,)),), (), ()),
        ((replace(HITTING, pods=(UID_A,)),), (HITTING,), ["a"]),
        ((replace(HITTING, pods=(GONE,)),), (), ()),
        ((replace(HITTING, pods=(GONE,)), FAULT), (), "ab"),
    ],
    ids=[
        "the one that was hit",
        "what the node says now counts",
        "nobody says whom",
        "another fault beside it names nobody",
        "an error of the GPU that one process met",
        "whom it met is gone: a verify says what is left",
        "a condition that names nobody takes back nothing",
        "whom it struck is gone: nobody else is concerned",
        "whom it struck is gone, and another fault may concern others",
    ],
)
def test_whose_work_was_hit_decides_as_far_as_it_goes(faults, said, ended):
    hit = hit_by(request_for(identity(), Step.END_JOB, faults=faults), node_that(said), now())
    found = sick_job([A, B], LABELS, SickGpus((), b""), hit)
    if len(ended) == 1:
        assert found == Job("default", "gpumend.io/job", ended[0])
    else:
        assert isinstance(found, tuple | None)
        assert len(found or ()) == len(ended)


def test_who_is_left_is_not_taken_for_the_job_that_was_hit_and_left():
    """Another fault names nobody: whether this one is concerned cannot be told."""
    faults = (replace(HITTING, pods=(UID_A,)), FAULT)
    hit = hit_by(request_for(identity(), Step.END_JOB, faults=faults), node_that(()), now())
    assert sick_job([B], LABELS, SickGpus((), b""), hit) == ("default/b (job default/b)",)


async def test_r30_once_the_job_that_was_hit_left_the_only_other_one_stays(cluster, temporal):
    """The worker died before the first try's end was on record."""
    node, hit, _ = await two_jobs(cluster)
    met = replace(FAULT, pods=(hit,))
    await sick_with(cluster, met)
    for _ in range(2):
        outcome = await temporal.run(ends(cluster), request(node, faults=(met,)))
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert await cluster.pods() == {"b-0"}


def node_that(said):
    return seen_node(faults=said)[1]


async def test_daemons_of_the_node_are_no_job(cluster, temporal):
    node = await cluster.add_node()
    plugin = pod_manifest("plugin", owner="DaemonSet", runtimeClassName="nvidia")
    await cluster.add_pod(plugin)
    await cluster.add_pod(rank("a-0", "a"))
    assert (await temporal.run(ends(cluster), request(node))).kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"plugin"}


async def test_a_job_that_does_not_leave_is_named_at_the_deadline(cluster, temporal):
    node = await cluster.add_node()
    cluster.stuck.add("a-0")
    await cluster.add_pod(rank("a-0", "a"))
    deadline = now() + timedelta(milliseconds=500)
    outcome = await temporal.run(ends(cluster), request(node, deadline=deadline))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, DEADLINE)
    assert "default/a-0" in outcome.detail


async def test_a_job_on_a_node_that_is_well_stays(cluster, temporal):
    node = await cluster.add_node(faults=())
    await cluster.add_pod(rank("a-0", "a"))
    assert (await temporal.run(ends(cluster), request(node))).reason == PREMISE_GONE
    assert await cluster.pods() == {"a-0"}


async def test_r20_before_a_reset_only_pods_that_may_hold_the_sick_gpu_leave(cluster, temporal):
    node = await cluster.add_node()
    await add_key(cluster)
    await cluster.add_pod(rank("holds", "a", SICK))
    await cluster.add_pod(rank("spared", "b", WELL))
    await cluster.add_pod(rank("unknown", "c"))
    await cluster.add_pod(pod_manifest("web"))
    drain = DrainActivities(cluster.api, settle=timedelta(milliseconds=50)).drain
    partly = request_for(node, Step.DRAIN, faults=(KNOWN,), makes_way_for=Step.RESET_GPU)
    assert (await temporal.run(drain, partly)).kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == {"spared", "web"}
    wholly = request_for(node, Step.DRAIN, faults=(KNOWN,), makes_way_for=Step.REBOOT)
    assert (await temporal.run(drain, wholly)).kind is OutcomeKind.SUCCEEDED
    assert await cluster.pods() == set()


REQUESTS = {
    "metadata": {"name": "evictionrequests.lifecycle.k8s.io"},
    "spec": {
        "group": "lifecycle.k8s.io",
        "names": {
            "plural": "evictionrequests",
            "singular": "evictionrequest",
            "kind": "EvictionRequest",
            "listKind": "EvictionRequestList",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
ASKS = "/apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests"


async def test_where_nobody_serves_eviction_requests_pods_are_evicted(cluster, temporal):
    node = await cluster.add_node()
    await cluster.add_pod(rank("a-0", "a"))
    outcome = await temporal.run(ends(cluster), request(node, ask_first=True))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert len(cluster.writes(path="/eviction")) == 1


async def test_a_job_is_asked_first_where_the_api_is_served(cluster, temporal):
    node = await cluster.add_node()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await cluster.raw.created(crds, REQUESTS)
    made = await cluster.add_pod(rank("a-0", "a"))
    ending = asyncio.create_task(temporal.run(ends(cluster), request(node, ask_first=True)))
    async with cluster.raw.watch(ASKS, resourceVersion="0") as asks:
        ask = await asks.until("ADDED")
    assert ask["spec"] == {
        "requester": "gpumend.io/remediation",
        "intent": "Eviction",
        "target": {"pod": {"name": "a-0", "uid": made["metadata"]["uid"]}},
    }
    await cluster.raw.delete("/api/v1/namespaces/default/pods/a-0", {"gracePeriodSeconds": 0})
    assert (await ending).kind is OutcomeKind.SUCCEEDED
    assert cluster.writes(path="/eviction", verb="create")[0]["requestURI"].startswith(ASKS)
    assert len(cluster.writes(path="/eviction")) == 1


async def test_what_was_asked_is_withdrawn_when_the_step_is_stopped(cluster, temporal):
    node = await cluster.add_node()
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await cluster.raw.created(crds, REQUESTS)
    await cluster.add_pod(rank("a-0", "a"))
    ending = asyncio.create_task(temporal.run(ends(cluster), request(node, ask_first=True)))
    await temporal.heard("waiting for 1")
    temporal.env.cancel()
    assert (await ending).kind is OutcomeKind.CANCELLED
    (ask,) = (await cluster.raw.read(ASKS))["items"]
    assert ask["spec"]["intent"] == "Withdrawn"


def test_a_scheduling_group_names_the_job_before_any_label():
    pod = rank("a-0", "a")
    assert job_of(pod, LABELS) == Job("default", "gpumend.io/job", "a")
    pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    assert job_of(pod, LABELS) == Job("default", "schedulingGroup", "gang")
    assert job_of(pod_manifest("web"), LABELS) is None


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        (rank("p", "a", SICK), True),
        (rank("p", "a", f"{SICK}::2"), True),
        (rank("p", "a", WELL), False),
        (rank("p", "a"), None),
        (rank("p", "a", "MIG-1"), None),
        (rank("p", "a", WELL, WELL), None),
        (pod_manifest("web"), False),
        (pod_manifest("plugin", runtimeClassName="nvidia"), None),
    ],
)
def test_in_doubt_nobody_says_whether_a_pod_holds_the_sick_gpu(pod, held):
    assert SickGpus((KNOWN.id,), KEY).held_by(pod) is held
    assert SickGpus((), b"").held_by(pod) is (
        False if held is False and "web" in str(pod) else None
    )
