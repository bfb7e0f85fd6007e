"""Looking again, just before acting: every reason not to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from activities.claims import claim_on
from activities.endings import ANOTHER_MACHINE, BOOT_UNKNOWN, REBORN
from activities.evidence import standing, worst
from activities.look import AGENT_SILENT_AFTER, Sight, look, premise_gone, refusal
from fleet.fault import FaultName
from fleet.finding import Finding, Verdict
from fleet.mark import UNDO_CORDON
from fleet.names import MANAGED_LABEL, MARK_ANNOTATION, PAUSE_ANNOTATION
from fleet.node import read_node
from fleet.outcome import OutcomeKind
from fleet.part import HOST, Part
from fleet.reason import (
    BOOT_CHANGED,
    BUSY_ELSEWHERE,
    HOLD_REMOVED,
    MARK_REMOVED,
    PAUSED,
    PREMISE_GONE,
    UNMANAGED,
)
from fleet.step import Step
from tests.cluster import FAULT, HOLD, conditions, identity, mark, now, request_for, seen_node

NOW = datetime(2026, 11, 29, 13, 0, tzinfo=UTC)
REQUEST = request_for(identity(), Step.REBOOT)


def changed(change):
    manifest, _ = seen_node()
    change(manifest)
    return manifest, read_node(manifest, "c1")


def annotate(**annotations):
    return lambda node: node["metadata"]["annotations"].update(annotations)


TABLE = [
    ("all is as it was", lambda node: None, None, None),
    ("a new object", lambda n: n["metadata"].update(uid="u2"), OutcomeKind.CANCELLED, REBORN),
    (
        "another machine",
        lambda n: n["spec"].update(providerID="cloud:///i-2"),
        OutcomeKind.SUPERSEDED,
        ANOTHER_MACHINE,
    ),
    (
        "no mark",
        lambda n: n["metadata"]["annotations"].clear(),
        OutcomeKind.CANCELLED,
        MARK_REMOVED,
    ),
    ("a broken mark", annotate(**{MARK_ANNOTATION: "{"}), OutcomeKind.CANCELLED, MARK_REMOVED),
    ("no hold", lambda n: n["spec"].update(taints=[]), OutcomeKind.CANCELLED, HOLD_REMOVED),
    (
        "opted out",
        lambda n: n["metadata"]["labels"].update({MANAGED_LABEL: "false"}),
        OutcomeKind.CANCELLED,
        UNMANAGED,
    ),
    ("paused", annotate(**{PAUSE_ANNOTATION: "audit"}), OutcomeKind.CANCELLED, PAUSED),
    (
        "booted",
        lambda n: n["status"]["nodeInfo"].update(bootID="boot-2"),
        OutcomeKind.CANCELLED,
        BOOT_CHANGED,
    ),
    (
        "no boot id for a moment",
        lambda n: n["status"]["nodeInfo"].update(bootID=""),
        OutcomeKind.TRANSIENT,
        BOOT_UNKNOWN,
    ),
    (
        "being deleted",
        lambda n: n["metadata"].update(deletionTimestamp="2026-11-29T12:00:00Z"),
        OutcomeKind.CANCELLED,
        BUSY_ELSEWHERE,
    ),
]


@pytest.mark.parametrize(
    ("change", "kind", "reason"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_each_reason_not_to_act_is_told(change, kind, reason):
    manifest, node = changed(change)
    no = refusal(manifest, node, REQUEST)
    assert (no and no.kind, no and no.reason) == (kind, reason)


def test_another_incidents_mark_is_not_ours():
    manifest, node = seen_node(marked=mark(id="another"))
    no = refusal(manifest, node, REQUEST)
    assert no
    assert no.reason == MARK_REMOVED


def test_a_cordon_that_the_mark_calls_ours_is_a_hold():
    manifest, node = seen_node(marked=mark(undo=(UNDO_CORDON,)), taints=[], unschedulable=True)
    assert refusal(manifest, node, REQUEST) is None


def test_a_foreign_cordon_is_no_hold_of_ours():
    manifest, node = seen_node(taints=[], unschedulable=True)
    no = refusal(manifest, node, REQUEST)
    assert no
    assert no.reason == HOLD_REMOVED


def test_a_request_without_a_boot_id_justifies_nothing():
    manifest, node = seen_node()
    no = refusal(manifest, node, replace(REQUEST, boot_id=""))
    assert no
    assert no.reason == BOOT_UNKNOWN


def taint(key):
    return lambda node: node["spec"]["taints"].append({"key": key, "effect": "NoSchedule"})


@pytest.mark.parametrize(
    ("change", "claimed"),
    [
        (lambda node: None, False),
        (taint("ToBeDeletedByClusterAutoscaler"), True),
        (taint("DeletionCandidateOfClusterAutoscaler"), False),
        (taint("karpenter.sh/disrupted"), True),
        (taint("karpenter.sh/rebooting"), True),
        (taint("node.cloudprovider.kubernetes.io/shutdown"), True),
        (taint("team"), False),
        (annotate(**{"weave.works/kured-reboot-in-progress": "x"}), True),
        (
            lambda n: n["metadata"]["labels"].update(
                {"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}
            ),
            True,
        ),
        (
            lambda n: n["metadata"]["labels"].update(
                {"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}
            ),
            False,
        ),
    ],
)
def test_other_controllers_at_work_are_seen(change, claimed):
    manifest, node = changed(change)
    assert bool(claim_on(manifest, node)) is claimed


def lost(code="condition:Ready=Unknown"):
    return replace(FAULT, name=FaultName.HOST_UNREACHABLE, part=HOST, code=code)


def with_condition(kind, status):
    manifest, _ = seen_node()
    manifest["status"]["conditions"].append({"type": kind, "status": status})
    return read_node(manifest, "c1")


STANDING = [
    ("it is in our condition", FAULT, seen_node()[1], True, Verdict.FAULT),
    ("the condition is healthy", FAULT, seen_node(faults=())[1], True, Verdict.OK),
    ("the agent is silent", FAULT, seen_node()[1], False, Verdict.UNKNOWN),
    (
        "another part's fault",
        replace(FAULT, part=Part("gpu:5")),
        seen_node()[1],
        True,
        Verdict.OK,
    ),
    ("Ready is Unknown", lost(), seen_node(ready="Unknown")[1], False, Verdict.FAULT),
    ("Ready went False", lost(), seen_node(ready="False")[1], False, Verdict.FAULT),
    ("Ready is True again", lost(), seen_node()[1], True, Verdict.OK),
    (
        "another's condition stands",
        lost("condition:Foreign=True"),
        with_condition("Foreign", "True"),
        True,
        Verdict.FAULT,
    ),
    (
        "another's condition turned",
        lost("condition:Foreign=True"),
        with_condition("Foreign", "False"),
        True,
        Verdict.OK,
    ),
    (
        "another's condition cannot tell",
        lost("condition:Foreign=True"),
        with_condition("Foreign", "Unknown"),
        True,
        Verdict.UNKNOWN,
    ),
    (
        "another's condition is gone",
        lost("condition:Foreign=True"),
        seen_node()[1],
        True,
        Verdict.UNKNOWN,
    ),
]


@pytest.mark.parametrize(
    ("fault", "node", "alive", "verdict"),
    [row[1:] for row in STANDING],
    ids=[row[0] for row in STANDING],
)
def test_a_fault_stands_or_not_or_nobody_knows(fault, node, alive, verdict):
    assert standing(fault, node, NOW, agent_alive=alive) is verdict


def test_conditions_of_another_boot_prove_nothing():
    manifest, _ = seen_node()
    manifest["status"]["conditions"] = conditions(boot="boot-0")
    node = read_node(manifest, "c1")
    assert standing(FAULT, node, NOW, agent_alive=True) is Verdict.UNKNOWN


def test_of_nothing_nothing_is_known():
    assert worst([]) is Verdict.UNKNOWN


@pytest.mark.parametrize("alive", [True, False])
def test_unknown_is_no_premise(alive):
    _, node = seen_node(faults=())
    no = premise_gone(node, REQUEST, NOW, alive=alive)
    assert no
    assert (no.kind, no.reason) == (OutcomeKind.CANCELLED, PREMISE_GONE)


def test_a_request_without_faults_has_no_premise():
    _, node = seen_node()
    assert premise_gone(node, replace(REQUEST, faults=()), NOW, alive=True)


def test_what_the_last_verify_saw_outranks_conditions_that_turned_healthy():
    _, node = seen_node(faults=())
    finding = Finding("memory", Part("gpu:3"), Verdict.FAULT, FaultName.UNCONTAINED_MEMORY)
    request = replace(REQUEST, evidence=(finding,))
    assert premise_gone(node, request, NOW, alive=True) is None
    fine = replace(REQUEST, evidence=(Finding("memory", Part("gpu:3"), Verdict.UNKNOWN),))
    assert premise_gone(node, fine, NOW, alive=True)


async def test_a_silent_agent_is_read_from_its_lease(quiet_cluster):
    node = await quiet_cluster.add_node()
    request = request_for(node, Step.REBOOT)
    assert isinstance(await look(quiet_cluster.api, request, now, premise=True), Sight)
    long_ago = now() - AGENT_SILENT_AFTER - timedelta(minutes=1)
    await quiet_cluster.renew_lease("n1", long_ago)
    no = await look(quiet_cluster.api, request, now, premise=True)
    assert not isinstance(no, Sight)
    assert no.reason == PREMISE_GONE


async def test_the_taint_of_the_hold_is_what_the_server_serves(quiet_cluster):
    await quiet_cluster.add_node()
    assert (await quiet_cluster.node()).hold is not None
    assert HOLD["key"] == (await quiet_cluster.node()).taints[0].key
