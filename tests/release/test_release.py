"""Giving a node back: only when it is well, and exactly as we found it."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from activities.close import HOLD_STANDS, CloseActivities
from activities.look import Sight
from activities.offers import missing, offered, withheld
from activities.release import NOT_READY, ReleaseActivities, Witness, not_well, undo_patch
from fleet.errors import Ambiguous, Refused
from fleet.fault import FaultName
from fleet.mark import UNDO_CORDON, UNDO_TAINT, MarkState
from fleet.names import MARK_ANNOTATION, PAUSE_ANNOTATION
from fleet.node import read_node
from fleet.outcome import OutcomeKind
from fleet.part import HOST
from fleet.reason import BOOT_CHANGED, FAULT_STANDS, HOLD_REMOVED, MARK_REMOVED, PAUSED
from fleet.step import Step
from simulator.apiserver.injection import Fault as Trouble
from tests.cluster import (
    FAULT,
    HOLD,
    conditions,
    identity,
    mark,
    now,
    pod_manifest,
    request_for,
    seen_node,
)

FOREIGN = {"key": "team", "value": "x", "effect": "NoSchedule"}
REQUEST = request_for(identity(), Step.RELEASE)
WELL = Witness(now(), agent_alive=True)


class Budget:
    """Who takes leases back; `problem` is raised instead."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.problem = problem
        self.back: list[str] = []

    async def give(self, incident: str) -> None:
        if self.problem:
            raise self.problem
        self.back.append(incident)


def releases(cluster, budget=None):
    give_back = (budget or Budget()).give
    return ReleaseActivities(cluster.api, give_back, patience=timedelta(milliseconds=300)).release


async def released(cluster, temporal, about=None, budget=None, **request):
    node = await cluster.add_node(**{"faults": (), **(about or {})})
    asked = request_for(node, Step.RELEASE, **request)
    return await temporal.run(releases(cluster, budget), asked)


async def test_a_well_node_gets_its_hold_off_and_goes_into_probation_in_one_patch(
    quiet_cluster, temporal
):
    outcome = await released(quiet_cluster, temporal)
    node = await quiet_cluster.node()
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert node.hold is None
    assert (node.mark.state, node.mark.undo) == (MarkState.PROBATION, ())
    assert len(quiet_cluster.writes()) == 1


@pytest.mark.parametrize(
    ("lent", "faults", "problem", "gave", "gone"),
    [
        (True, (), None, True, 1),
        (False, (), None, False, 0),
        (True, (FAULT,), None, False, 0),
        (True, (), Ambiguous("the answer was lost"), False, 0),
        (True, (), Refused(0, "budget-refused", "no"), False, 0),
    ],
    ids=["lent", "nothing lent", "still sick", "answer lost", "refused"],
)
async def test_a_lease_goes_back_with_the_node_and_never_keeps_it(
    quiet_cluster, temporal, lent, faults, problem, gave, gone
):
    budget = Budget(problem)
    outcome = await released(quiet_cluster, temporal, {"faults": faults}, budget, lent=lent)
    assert (outcome.kind is OutcomeKind.SUCCEEDED) == (not faults)
    assert (outcome.gave_back, len(budget.back)) == (gave, gone)
    assert all(each.startswith("node/c1/n1/") for each in budget.back)


async def test_r22_a_foreign_cordon_and_taint_survive_our_repair(quiet_cluster, temporal):
    about = {"taints": [FOREIGN, HOLD], "unschedulable": True}
    outcome = await released(quiet_cluster, temporal, about)
    node = await quiet_cluster.node()
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert node.unschedulable
    assert [taint.key for taint in node.taints if "unschedulable" not in taint.key] == ["team"]


async def test_r10_a_node_that_is_still_sick_keeps_its_hold_and_every_foreign_mark(
    quiet_cluster, temporal
):
    outcome = await released(quiet_cluster, temporal, {"faults": (FAULT,), "unschedulable": True})
    node = await quiet_cluster.node()
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, FAULT_STANDS)
    assert node.hold
    assert node.unschedulable
    assert quiet_cluster.writes() == []


async def test_release_waits_for_an_agent_that_has_not_yet_said_so(quiet_cluster, temporal):
    node = await quiet_cluster.add_node()
    patience = timedelta(seconds=20)
    activity = ReleaseActivities(quiet_cluster.api, Budget().give, patience=patience).release
    running = asyncio.create_task(temporal.run(activity, request_for(node, Step.RELEASE)))
    await temporal.heard("waiting for the node")
    await quiet_cluster.change_node({"status": {"conditions": conditions()}})
    assert (await running).kind is OutcomeKind.SUCCEEDED


async def test_a_fault_that_shows_up_after_the_judgement_makes_the_release_fail(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(faults=())
    patch = quiet_cluster.api.patch

    async def sicken_then_patch(*arguments):
        await quiet_cluster.change_node({"status": {"conditions": conditions(FAULT)}})
        return await patch(*arguments)

    quiet_cluster.api.patch = sicken_then_patch
    outcome = await temporal.run(releases(quiet_cluster), request_for(node, Step.RELEASE))
    assert outcome.reason == FAULT_STANDS
    assert (await quiet_cluster.node()).hold


async def test_r30_a_release_whose_answer_was_lost_is_found_done(quiet_cluster, temporal):
    quiet_cluster.server.faults.order(Trouble(verb="patch", path="/nodes/", drop=True))
    outcome = await released(quiet_cluster, temporal)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert len(quiet_cluster.writes(verb="patch")) == 1


async def test_a_released_node_is_released_only_once(quiet_cluster, temporal):
    about = {"marked": mark(MarkState.PROBATION, undo=()), "taints": [FOREIGN]}
    outcome = await released(quiet_cluster, temporal, about)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert quiet_cluster.writes() == []


async def test_a_step_of_ours_that_still_runs_keeps_the_node(quiet_cluster, temporal):
    step = pod_manifest("step-x", owner=None, namespace="gpumend")
    step["metadata"]["labels"] = {"gpumend.io/operation": "x"}
    await quiet_cluster.add_pod(step)
    outcome = await released(quiet_cluster, temporal)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, NOT_READY)
    assert "step-x" in outcome.detail


async def test_a_person_may_release_a_sick_node(quiet_cluster, temporal):
    outcome = await released(quiet_cluster, temporal, {"faults": (FAULT,)}, force=True)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (await quiet_cluster.node()).hold is None


@pytest.mark.parametrize(
    ("about", "reason"),
    [({"taints": []}, HOLD_REMOVED), ({"marked": None}, MARK_REMOVED)],
)
async def test_even_by_force_only_our_own_hold_is_released(quiet_cluster, temporal, about, reason):
    outcome = await released(quiet_cluster, temporal, about, force=True)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.CANCELLED, reason)
    assert quiet_cluster.writes() == []


def sight(**about):
    return Sight(*seen_node(**{"faults": (), **about}))


def without(kind):
    found = sight()
    found.manifest["status"]["conditions"] = [
        each for each in found.manifest["status"]["conditions"] if each["type"] != kind
    ]
    return Sight(found.manifest, read_node(found.manifest, "c1"))


UNREACHABLE = replace(
    FAULT, name=FaultName.HOST_UNREACHABLE, part=HOST, code="condition:Ready=Unknown"
)
STALE = replace(FAULT, part=HOST, code="condition:Foreign=True")
SHORT = {"marked": mark(offered=("nvidia.com/gpu=8",)), "gpus": 7}

DOUBTS = [
    ("well", sight(), REQUEST, WELL, None, ""),
    ("sick", sight(faults=(FAULT,)), REQUEST, WELL, FAULT_STANDS, "gpu:3"),
    (
        "sick in a way that policy holds no node for",
        sight(faults=(FAULT,)),
        replace(REQUEST, faults=(), harmless=(FAULT.name,)),
        WELL,
        None,
        "",
    ),
    ("not ready", sight(ready="False"), REQUEST, WELL, NOT_READY, "Ready is False"),
    ("silent", sight(), REQUEST, replace(WELL, agent_alive=False), NOT_READY, "silent"),
    ("a condition is gone", without("gpumend.io/Memory"), REQUEST, WELL, NOT_READY, "Memory"),
    ("a step runs", sight(), REQUEST, replace(WELL, working=("step-x",)), NOT_READY, "step-x"),
    ("a GPU less", sight(**SHORT), REQUEST, WELL, NOT_READY, "nvidia.com/gpu: 7 of 8"),
    ("booted", sight(boot="boot-2"), REQUEST, WELL, BOOT_CHANGED, ""),
    (
        "unreachable",
        sight(ready="Unknown"),
        replace(REQUEST, faults=(UNREACHABLE,)),
        WELL,
        FAULT_STANDS,
        "host-unreachable",
    ),
    (
        "a foreign condition is gone",
        sight(),
        replace(REQUEST, faults=(STALE,)),
        WELL,
        NOT_READY,
        "is unknown",
    ),
]


@pytest.mark.parametrize(
    ("found", "request_", "witness", "reason", "words"),
    [row[1:] for row in DOUBTS],
    ids=[row[0] for row in DOUBTS],
)
def test_only_a_node_that_is_positively_well_is_given_back(found, request_, witness, reason, words):
    no = not_well(found, request_, witness)
    assert (no and no.reason) == reason
    assert words in (no.detail if no else "")


def test_a_paused_node_is_left_as_it_is():
    found = sight()
    paused = Sight(found.manifest, replace(found.node, pause="audit"))
    no = not_well(paused, REQUEST, WELL)
    assert no
    assert no.reason == PAUSED
    assert PAUSE_ANNOTATION


@pytest.mark.parametrize(
    ("undo", "keys"),
    [
        ((), set()),
        ((UNDO_TAINT,), {"taints"}),
        ((UNDO_CORDON,), {"unschedulable"}),
        ((UNDO_TAINT, UNDO_CORDON), {"taints", "unschedulable"}),
    ],
)
def test_only_what_the_record_says_is_undone(undo, keys):
    manifest, _ = seen_node()
    patch = undo_patch(manifest, mark(undo=undo))
    assert set(patch.get("spec", {})) == keys


def test_what_a_node_offers_is_counted_by_kind():
    manifest, node = seen_node(gpus=8)
    assert offered(manifest) == ("nvidia.com/gpu=8",)
    assert missing(("nvidia.com/gpu=8",), node.allocatable) == ()
    assert missing(("nvidia.com/gpu=9",), node.allocatable) == ("nvidia.com/gpu: 8 of 9",)
    assert missing(("vpc.amazonaws.com/efa=4",), node.allocatable) == (
        "vpc.amazonaws.com/efa: 0 of 4",
    )


def test_what_the_device_plugin_calls_unhealthy_is_withheld():
    manifest, _ = seen_node(gpus=8)
    manifest["status"]["allocatable"] = {"nvidia.com/gpu": "7"}
    assert withheld(manifest) == ("nvidia.com/gpu: 7 of 8",)


async def closed(cluster, temporal, **about):
    node = await cluster.add_node(**about)
    activity = CloseActivities(cluster.api).close
    return await temporal.run(activity, request_for(node, Step.CLOSE))


async def test_close_takes_the_mark_off(quiet_cluster, temporal):
    marked = mark(MarkState.PROBATION, undo=())
    outcome = await closed(quiet_cluster, temporal, marked=marked, taints=[FOREIGN])
    manifest = await quiet_cluster.raw.read("/api/v1/nodes/n1")
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert MARK_ANNOTATION not in manifest["metadata"].get("annotations", {})


async def test_a_mark_is_not_taken_off_a_node_that_is_still_held(quiet_cluster, temporal):
    outcome = await closed(quiet_cluster, temporal)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.PERMANENT, HOLD_STANDS)
    assert (await quiet_cluster.node()).mark


async def test_another_incidents_mark_is_left_alone(quiet_cluster, temporal):
    outcome = await closed(quiet_cluster, temporal, marked=mark(id="another"))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert quiet_cluster.writes() == []
