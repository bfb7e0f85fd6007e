"""Taint, checks, and the end of a proof, before the emulated API server."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.pinned_pod import PinnedPods
from activities.prove import ProveActivities
from fleet.names import HOLD_EFFECT, UNPROVEN_TAINT
from fleet.outcome import OutcomeKind
from fleet.proof import BY_TRIALS, Why
from fleet.proving import ProofEnd
from fleet.reason import BOOT_CHANGED, FAULT_STANDS
from fleet.step import NodeStepResult, Step
from simulator.apiserver.injection import Fault
from tests.cluster import FAULT, conditions, mark, now, pod_manifest, report
from tests.proving.nodes import (
    NO_WAIT,
    OK,
    SICK,
    UNKNOWN,
    a_request,
    gpu_pod,
    serving,
    unproven,
)

PASSED = (NodeStepResult.DONE, OK)


def steps(cluster, late_work: timedelta = NO_WAIT, patience: timedelta = NO_WAIT):
    pods = PinnedPods(cluster.api, "i", now, start_limit=timedelta(seconds=20))
    return ProveActivities(cluster.api, pods, now, late_work=late_work, patience=patience)


def answering(result: NodeStepResult, *findings):
    def on_step(pod):
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        return report(operation, Step.VERIFY, result, findings=findings)

    return on_step


def taints(node) -> dict[str, str]:
    return {each.key: each.value for each in node.taints}


async def test_an_idle_node_gets_the_taint_and_keeps_what_others_wrote(cluster, temporal):
    node = await cluster.add_node(**serving())
    outcome = await temporal.run(steps(cluster).taint, a_request(node, Why.SWEEP))
    after = await cluster.node()
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert taints(after) == {"example.com/mine": "x", UNPROVEN_TAINT: "sweep"}
    assert after.unproven.effect == HOLD_EFFECT
    again = await temporal.run(steps(cluster).taint, a_request(node, Why.SWEEP))
    assert again.kind is OutcomeKind.SUCCEEDED
    assert len(cluster.writes(verb="patch", path="/nodes/")) == 1


async def test_a_node_with_work_is_never_touched(cluster, temporal):
    node = await cluster.add_node(**serving())
    await cluster.add_pod(gpu_pod("job"))
    outcome = await temporal.run(steps(cluster).taint, a_request(node, Why.SWEEP))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, "in-use")
    assert "default/job" in outcome.detail
    assert cluster.writes(path="/nodes/") == []


async def test_what_belongs_to_the_node_or_needs_no_gpu_is_no_work(cluster, temporal):
    node = await cluster.add_node(**serving())
    await cluster.add_pod(pod_manifest("web"))
    daemon = gpu_pod("plugin")
    daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    await cluster.add_pod(daemon)
    outcome = await temporal.run(steps(cluster).taint, a_request(node, Why.SWEEP))
    assert outcome.kind is OutcomeKind.SUCCEEDED


async def test_work_that_was_placed_before_the_taint_is_seen_and_the_taint_comes_off(
    cluster, temporal
):
    node = await cluster.add_node(**serving())
    request = a_request(node, Why.SWEEP)
    running = asyncio.ensure_future(
        temporal.run(steps(cluster, late_work=timedelta(seconds=20)).taint, request)
    )
    await temporal.heard("looking whether work came")
    await cluster.add_pod(gpu_pod("late"))
    outcome = await running
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, "in-use")
    ended = await temporal.run(steps(cluster).end, replace(request, end=ProofEnd.STOPPED))
    assert ended.kind is OutcomeKind.SUCCEEDED
    after = await cluster.node()
    assert taints(after) == {"example.com/mine": "x"}
    assert after.proof.tried is not None
    assert after.proof.proven is None


NOT_NOW: list[tuple[dict[str, Any], str]] = [
    ({"marked": mark()}, "incident"),
    ({"boot": "boot-2"}, BOOT_CHANGED),
    ({"unschedulable": True}, "cordoned"),
    ({"ready": "False"}, "not-ready"),
]


async def add(cluster, name: str, **about):
    return await cluster.add_node(name=name, provider_id=f"c:///{name}", **about)


@pytest.mark.parametrize("step", ["taint", "prove"])
async def test_nothing_is_done_to_a_node_that_is_not_to_be_proven(cluster, temporal, step):
    plain = serving() if step == "taint" else unproven()
    why = Why.SWEEP if step == "taint" else Why.JOINED
    for number, (about, reason) in enumerate(NOT_NOW):
        node = await add(cluster, f"n{number}", **plain | about)
        outcome = await temporal.run(getattr(steps(cluster), step), a_request(node, why))
        assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, reason)
    assert cluster.writes() == []


async def test_a_node_that_is_gone_or_born_again_is_another_matter(cluster, temporal):
    node = await cluster.add_node(**unproven())
    reborn = replace(node, uid="another")
    outcome = await temporal.run(steps(cluster).prove, a_request(reborn))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, "reborn")
    gone = replace(node, name="n9")
    outcome = await temporal.run(steps(cluster).prove, a_request(gone))
    assert outcome.kind is OutcomeKind.SUPERSEDED
    for other in (reborn, gone):
        request = a_request(other, Why.SWEEP, ProofEnd.STOPPED)
        assert (await temporal.run(steps(cluster).end, request)).kind is not OutcomeKind.TRANSIENT
    assert cluster.writes() == []


ANSWERS = [
    (NodeStepResult.DONE, (OK,), OutcomeKind.SUCCEEDED),
    (NodeStepResult.FAILED, (SICK, OK), OutcomeKind.PERMANENT),
    (NodeStepResult.FAILED, (UNKNOWN,), OutcomeKind.TRANSIENT),
]


async def test_the_checks_run_on_the_node_and_are_judged_like_any_verify(cluster, temporal):
    node = await cluster.add_node(**unproven())
    for number, (result, findings, kind) in enumerate(ANSWERS):
        cluster.on_step = answering(result, *findings)
        request = a_request(node, operation=f"prove-{number}")
        outcome = await temporal.run(steps(cluster).prove, request)
        assert (outcome.kind, outcome.findings) == (kind, findings)
    assert taints(await cluster.node())[UNPROVEN_TAINT] == ""


async def test_no_check_is_run_beside_a_job_nor_for_a_taint_that_is_gone(cluster, temporal):
    node = await cluster.add_node(**unproven())
    await cluster.add_pod(gpu_pod("job"))
    assert (await temporal.run(steps(cluster).prove, a_request(node))).reason == "in-use"
    other = await cluster.add_node(**serving(name="n2", provider_id="c:///2"))
    assert (await temporal.run(steps(cluster).prove, a_request(other))).reason == "taint-gone"
    assert cluster.writes() == []


async def test_after_a_pass_the_taint_comes_off_and_the_node_remembers_when(cluster, temporal):
    for number, why in enumerate(Why, start=1):
        node = await add(cluster, f"n{number}", **unproven(why))
        request = a_request(node, why, ProofEnd.PROVEN)
        outcome = await temporal.run(steps(cluster).end, request)
        after = await cluster.node(f"n{number}")
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert taints(after) == {"example.com/mine": "x"}
        proven = after.proof.paired if why in BY_TRIALS else after.proof.proven
        assert proven >= request.since
        again = await temporal.run(steps(cluster).end, request)
        assert again.kind is OutcomeKind.SUCCEEDED, "an answer that was lost is seen, not repeated"
        assert len(cluster.writes(verb="patch", path="/nodes/")) == number


DENIED: list[tuple[dict[str, Any], str]] = [
    ({"faults": (FAULT,)}, FAULT_STANDS),
    ({"marked": mark()}, "incident"),
    ({"boot": "boot-2"}, BOOT_CHANGED),
    ({"taints": []}, "taint-gone"),
]


async def test_a_pass_is_not_enough_where_the_node_says_otherwise(cluster, temporal):
    for number, (about, reason) in enumerate(DENIED):
        node = await add(cluster, f"n{number}", **unproven() | about)
        outcome = await temporal.run(steps(cluster).end, a_request(node, end=ProofEnd.PROVEN))
        assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, reason)
    assert cluster.writes() == []


async def test_a_silent_agent_proves_nothing(cluster, temporal):
    node = await cluster.add_node(**unproven())
    await cluster.renew_lease("n1", now() - timedelta(hours=1))
    outcome = await temporal.run(steps(cluster).end, a_request(node, end=ProofEnd.PROVEN))
    assert outcome.kind is OutcomeKind.TRANSIENT
    assert taints(await cluster.node())[UNPROVEN_TAINT] == ""


async def test_it_waits_for_the_agent_to_agree(cluster, temporal):
    node = await cluster.add_node(**unproven(faults=(FAULT,)))
    running = asyncio.ensure_future(
        temporal.run(
            steps(cluster, patience=timedelta(seconds=20)).end,
            a_request(node, end=ProofEnd.PROVEN),
        )
    )
    await temporal.heard("waiting for the node to say")
    await cluster.change_node({"status": {"conditions": conditions()}})
    assert (await running).kind is OutcomeKind.SUCCEEDED


LEFT = [
    (Why.SWEEP, ProofEnd.FOUND, "found"),
    (Why.SWEEP, ProofEnd.UNKNOWN, None),
    (Why.SWEEP, ProofEnd.STOPPED, None),
    (Why.SWEEP, ProofEnd.NO_ROOM, None),
    (Why.JOINED, ProofEnd.FOUND, ""),
    (Why.JOINED, ProofEnd.UNKNOWN, ""),
    (Why.FOUND, ProofEnd.UNKNOWN, "found"),
    (Why.FOUND, ProofEnd.STOPPED, "found"),
    (Why.PAIRS, ProofEnd.FOUND, "odd"),
    (Why.PAIRS, ProofEnd.UNKNOWN, None),
    (Why.PAIRS, ProofEnd.STOPPED, None),
    (Why.ODD, ProofEnd.UNKNOWN, "odd"),
    (Why.ODD, ProofEnd.FOUND, "odd"),
]


async def test_unproven_only_a_swept_node_serves_again_and_only_if_nothing_was_found(
    cluster, temporal
):
    for number, (why, end, left) in enumerate(LEFT):
        node = await add(cluster, f"n{number}", **unproven(why))
        outcome = await temporal.run(steps(cluster).end, a_request(node, why, end))
        assert outcome.kind is OutcomeKind.SUCCEEDED
        assert taints(await cluster.node(f"n{number}")).get(UNPROVEN_TAINT) == left, (why, end)


async def test_no_work_comes_while_the_checks_of_a_proof_may_still_use_the_gpus(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(**unproven(Why.SWEEP))
    checks = pod_manifest("step-prove-1", namespace="gpumend")
    checks["metadata"]["labels"] = {"gpumend.io/operation": "prove-1"}
    running = {"state": {"running": {}}, "name": "c", "ready": True}
    status = {"phase": "Running", "containerStatuses": [running]}
    made = await quiet_cluster.add_pod(checks | {"status": status})
    reset = pod_manifest("step-m-3-reset-gpu", namespace="gpumend")
    reset["metadata"]["labels"] = {"gpumend.io/operation": "m-3-reset-gpu"}
    await quiet_cluster.add_pod(reset | {"status": status})
    stopping = a_request(node, Why.SWEEP, ProofEnd.STOPPED)
    with pytest.raises(ApplicationError, match="step-prove-1 still ends"):
        await temporal.run(steps(quiet_cluster).end, stopping)
    path = "/api/v1/namespaces/gpumend/pods/step-prove-1"
    assert "deletionTimestamp" in (await quiet_cluster.raw.read(path))["metadata"]
    assert UNPROVEN_TAINT in taints(await quiet_cluster.node())
    at_once = {"gracePeriodSeconds": 0, "preconditions": {"uid": made["metadata"]["uid"]}}
    await quiet_cluster.raw.delete(path, at_once)
    outcome = await temporal.run(steps(quiet_cluster).end, stopping)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert UNPROVEN_TAINT not in taints(await quiet_cluster.node())
    beside = await quiet_cluster.raw.read("/api/v1/namespaces/gpumend/pods/step-m-3-reset-gpu")
    assert "deletionTimestamp" not in beside["metadata"]


async def test_an_incident_that_came_meanwhile_keeps_its_hold_and_mark(cluster, temporal):
    node = await cluster.add_node(**unproven(Why.SWEEP, marked=mark()))
    await temporal.run(steps(cluster).end, a_request(node, Why.SWEEP, ProofEnd.FOUND))
    after = await cluster.node()
    assert taints(after)[UNPROVEN_TAINT] == "found"
    assert after.mark == mark()


@pytest.mark.parametrize(
    "trouble", [{"drop": True}, {"code": 409, "reason": "Conflict"}, {"code": 503}]
)
async def test_an_answer_that_was_lost_and_a_write_in_between_are_looked_for(
    cluster, temporal, trouble
):
    node = await cluster.add_node(**unproven())
    cluster.server.faults.order(Fault("patch", "/nodes/n1", **trouble))
    for _ in range(3):
        try:
            outcome = await temporal.run(steps(cluster).end, a_request(node, end=ProofEnd.PROVEN))
        except ApplicationError:
            continue
        break
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (await cluster.node()).unproven is None
    assert len(cluster.writes(verb="patch", path="/nodes/")) <= 2
