"""A verify passes on positive evidence from the same boot, and on nothing else."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.pinned_pod import NoReport, PinnedPods, Trouble
from activities.verify import FAULT_FOUND, UNVERIFIED, VerifyActivities, judge_verify
from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.outcome import OutcomeKind
from fleet.part import Part
from fleet.reason import BOOT_CHANGED, HOLD_REMOVED
from fleet.step import NodeStepReport, NodeStepResult, Step
from tests.cluster import BOOT, conditions, identity, now, report, request_for, seen_node

GPU = Part("gpu:3")
OK = Finding("pci", GPU, Verdict.OK)
UNKNOWN = Finding("pci", GPU, Verdict.UNKNOWN)
SICK = Finding("pci", GPU, Verdict.FAULT, FaultName.GPU_LOST)
REQUEST = request_for(identity(), Step.VERIFY, checks=("pci",))
DONE, FAILED, REFUSED = NodeStepResult.DONE, NodeStepResult.FAILED, NodeStepResult.REFUSED


def said(result, *findings, boot=BOOT):
    return NodeStepReport(REQUEST.operation, Step.VERIFY, result, boot, findings=findings)


TABLE = [
    (said(DONE, OK), OutcomeKind.SUCCEEDED, ""),
    (said(FAILED, SICK), OutcomeKind.PERMANENT, FAULT_FOUND),
    (said(FAILED, SICK, UNKNOWN), OutcomeKind.PERMANENT, FAULT_FOUND),
    (said(DONE, SICK), OutcomeKind.PERMANENT, FAULT_FOUND),
    (said(FAILED, UNKNOWN), OutcomeKind.TRANSIENT, UNVERIFIED),
    (said(DONE, OK, UNKNOWN), OutcomeKind.TRANSIENT, UNVERIFIED),
    (said(FAILED), OutcomeKind.TRANSIENT, UNVERIFIED),
    (said(REFUSED), OutcomeKind.TRANSIENT, UNVERIFIED),
    (said(DONE, OK, boot="boot-2"), OutcomeKind.TRANSIENT, UNVERIFIED),
    (said(DONE), OutcomeKind.TRANSIENT, UNVERIFIED),
    *((NoReport(each, "x"), OutcomeKind.TRANSIENT, UNVERIFIED) for each in Trouble),
]


@pytest.mark.parametrize(("found", "kind", "reason"), TABLE)
def test_unknown_is_neither_passed_nor_failed(found, kind, reason):
    outcome = judge_verify(found, REQUEST, seen_node()[1])
    assert (outcome.kind, outcome.reason) == (kind, reason)


def test_a_verify_that_could_not_tell_says_by_code_what_it_lacks():
    lacks = replace(UNKNOWN, check="compute", code="compute:no-backend")
    report = replace(said(FAILED, OK, lacks, lacks, UNKNOWN), reason="unknown")
    outcome = judge_verify(report, REQUEST, seen_node()[1])
    assert outcome.detail == "unknown: compute:no-backend"


def verifies(cluster):
    pods = PinnedPods(cluster.api, "i", now, start_limit=timedelta(seconds=20))
    return VerifyActivities(cluster.api, pods).verify


def passes(cluster):
    def on_step(pod):
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        return report(operation, Step.VERIFY, findings=(OK,))

    cluster.on_step = on_step


async def test_a_verify_that_passes_carries_what_it_found(cluster, temporal):
    node = await cluster.add_node()
    passes(cluster)
    outcome = await temporal.run(verifies(cluster), request_for(node, Step.VERIFY))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert outcome.findings == (OK,)
    assert outcome.boot_id == BOOT


async def test_r36_a_node_that_is_still_starting_is_waited_for(cluster, temporal):
    node = await cluster.add_node(ready="False")
    passes(cluster)
    running = asyncio.create_task(temporal.run(verifies(cluster), request_for(node, Step.VERIFY)))
    await temporal.heard("waiting for the node to be Ready")
    assert cluster.writes() == []
    await cluster.change_node({"status": {"conditions": conditions()}})
    assert (await running).kind is OutcomeKind.SUCCEEDED


async def test_a_node_that_does_not_become_ready_is_unverified(cluster, temporal):
    node = await cluster.add_node(ready="False")
    request = request_for(node, Step.VERIFY, deadline=now() + timedelta(milliseconds=200))
    outcome = await temporal.run(verifies(cluster), request)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, UNVERIFIED)


async def test_a_boot_during_the_verify_makes_it_void(cluster, temporal):
    node = await cluster.add_node()
    passes(cluster)
    real_get = cluster.api.get

    async def get_after_boot(path):
        found = await real_get(path)
        if await cluster.pods("gpumend"):
            found.get("status", {}).get("nodeInfo", {}).update(bootID="boot-2")
        return found

    cluster.api.get = get_after_boot
    outcome = await temporal.run(verifies(cluster), request_for(node, Step.VERIFY))
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, BOOT_CHANGED)


async def test_nothing_runs_on_a_node_whose_hold_was_taken_off(cluster, temporal):
    node = await cluster.add_node(taints=[])
    outcome = await temporal.run(verifies(cluster), request_for(node, Step.VERIFY))
    assert outcome.reason == HOLD_REMOVED
    assert cluster.writes() == []


async def test_the_checks_run_only_after_the_node_has_settled(cluster, temporal):
    node = await cluster.add_node()
    passes(cluster)
    settle = timedelta(milliseconds=300)
    begun = now()
    request = request_for(node, Step.VERIFY, settle=settle)
    outcome = await temporal.run(verifies(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert now() - begun >= settle
    assert temporal.said.index("running the checks on the node") > 0


async def test_a_verify_that_is_taken_up_again_does_not_settle_again(cluster, temporal):
    node = await cluster.add_node()
    passes(cluster)
    request = request_for(node, Step.VERIFY)
    await temporal.run(verifies(cluster), request)
    before = len(temporal.said)
    temporal.later_try()
    outcome = await temporal.run(verifies(cluster), request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert not any("settle" in each for each in temporal.said[before:])
