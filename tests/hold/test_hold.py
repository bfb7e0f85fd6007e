"""Taking a held node up: pending to owned, once, and never against a person."""

from dataclasses import replace

import pytest

from activities.adapters.kubernetes import KubernetesApi
from activities.endings import CONTENDED
from activities.hold import HoldActivities, judge_hold
from activities.node_change import change_node, guarded, taints_patch
from activities.node_claims import VETO
from activities.release import undo_patch
from activities.undo import annotation_entry
from fleet.errors import Ambiguous, Conflict
from fleet.mark import UNDO_CORDON, UNDO_TAINT, MarkState, parse_mark
from fleet.names import HOLD_TAINT, MANAGED_LABEL, MARK_ANNOTATION
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import HOLD_REMOVED, MARK_REMOVED, UNMANAGED
from fleet.step import Step
from simulator.apiserver.injection import Fault as Trouble
from tests.cluster import HOLD, INCIDENT, identity, mark, now, request_for, seen_node

REQUEST = request_for(identity(), Step.HOLD)
PENDING = mark(MarkState.PENDING)
NO_TAINT: list[dict[str, str]] = []

ENDS = [
    ("owned", {"marked": mark()}, OutcomeKind.SUCCEEDED, ""),
    (
        "a person took the hold off",
        {"marked": PENDING, "taints": NO_TAINT},
        OutcomeKind.CANCELLED,
        HOLD_REMOVED,
    ),
    (
        "owned, and a person took the hold off",
        {"marked": mark(), "taints": NO_TAINT},
        OutcomeKind.CANCELLED,
        HOLD_REMOVED,
    ),
    ("nothing there", {"marked": None, "taints": NO_TAINT}, OutcomeKind.CANCELLED, MARK_REMOVED),
    (
        "another incident's mark",
        {"marked": mark(MarkState.PENDING, id="another")},
        OutcomeKind.CANCELLED,
        MARK_REMOVED,
    ),
    ("another machine", {"provider_id": "cloud:///i-2"}, OutcomeKind.SUPERSEDED, "another-machine"),
]


@pytest.mark.parametrize(
    ("about", "kind", "reason"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_each_state_that_leaves_nothing_to_do_has_its_end(about, kind, reason):
    end = judge_hold(*seen_node(**about), REQUEST, now())
    assert isinstance(end, Outcome)
    assert (end.kind, end.reason) == (kind, reason)


def test_the_mark_of_a_node_object_made_anew_becomes_that_of_the_incident_that_goes_on():
    fresh = mark(MarkState.PENDING, id="another", uid="u1")
    patch = judge_hold(*seen_node(marked=fresh), replace(REQUEST, force=True), now())
    assert not isinstance(patch, Outcome)
    taken = parse_mark(patch["metadata"]["annotations"][MARK_ANNOTATION])
    assert (taken.id, taken.state) == (INCIDENT, MarkState.OWNED)


def test_a_mark_that_another_run_owns_is_not_taken_over_even_so():
    other = mark(MarkState.OWNED, id="another", uid="u1")
    end = judge_hold(*seen_node(marked=other), replace(REQUEST, force=True), now())
    assert isinstance(end, Outcome)
    assert end.reason == MARK_REMOVED


def test_a_node_that_people_opted_out_is_not_taken_up():
    manifest, node = seen_node(marked=PENDING)
    opted_out = replace(node, labels={MANAGED_LABEL: "false"})
    end = judge_hold(manifest, opted_out, REQUEST, now())
    assert isinstance(end, Outcome)
    assert end.reason == UNMANAGED


async def held(cluster, temporal, **about):
    node = await cluster.add_node(**about)
    activity = HoldActivities(cluster.api).hold
    return await temporal.run(activity, request_for(node, Step.HOLD))


async def test_a_pending_mark_becomes_owned_and_remembers_what_the_node_offered(
    quiet_cluster, temporal
):
    outcome = await held(quiet_cluster, temporal, marked=PENDING)
    found = (await quiet_cluster.node()).mark
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert found.state is MarkState.OWNED
    assert found.undo == (UNDO_TAINT,)
    assert found.offered == ("nvidia.com/gpu=8",)


async def test_a_mark_of_a_lost_run_is_adopted_with_its_undo_record(quiet_cluster, temporal):
    about = mark(MarkState.PENDING, undo=(UNDO_TAINT, UNDO_CORDON), offered=("nvidia.com/gpu=9",))
    await held(quiet_cluster, temporal, marked=about)
    found = (await quiet_cluster.node()).mark
    assert (found.undo, found.offered) == (about.undo, about.offered)


async def test_a_hold_without_a_mark_is_adopted(quiet_cluster, temporal):
    outcome = await held(quiet_cluster, temporal, marked=None)
    found = (await quiet_cluster.node()).mark
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (found.id, found.state, found.undo) == (INCIDENT, MarkState.OWNED, (UNDO_TAINT,))


async def test_a_hold_that_a_person_took_off_is_never_put_on_again(quiet_cluster, temporal):
    outcome = await held(quiet_cluster, temporal, marked=PENDING, taints=[])
    assert outcome.reason == HOLD_REMOVED
    assert (await quiet_cluster.node()).hold is None
    assert quiet_cluster.writes() == []


async def test_a_recurrence_in_probation_is_held_again_in_one_patch(quiet_cluster, temporal):
    marked = mark(MarkState.PROBATION, undo=())
    foreign = {"key": "team", "value": "x", "effect": "NoSchedule"}
    outcome = await held(quiet_cluster, temporal, marked=marked, taints=[foreign])
    node = await quiet_cluster.node()
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (node.mark.state, node.mark.undo) == (MarkState.OWNED, (UNDO_TAINT,))
    assert {taint.key for taint in node.taints} == {"team", HOLD_TAINT}
    assert len(quiet_cluster.writes()) == 1


async def test_a_person_may_have_a_hold_put_on_again(quiet_cluster, temporal):
    node = await quiet_cluster.add_node(marked=mark(undo=()), taints=[])
    request = request_for(node, Step.HOLD, force=True)
    outcome = await temporal.run(HoldActivities(quiet_cluster.api).hold, request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (await quiet_cluster.node()).hold
    assert (await quiet_cluster.node()).mark.undo == (UNDO_TAINT,)


async def test_a_hold_put_on_again_for_a_fault_that_ended_meanwhile_is_released_like_any_other(
    quiet_cluster, temporal
):
    node = await quiet_cluster.add_node(marked=mark(undo=()), taints=[])
    request = request_for(node, Step.HOLD, force=True, faults=())
    outcome = await temporal.run(HoldActivities(quiet_cluster.api).hold, request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert (await quiet_cluster.node()).mark.undo == (UNDO_TAINT,)


async def test_r30_a_hold_whose_answer_was_lost_is_not_written_twice(quiet_cluster, temporal):
    quiet_cluster.server.faults.order(Trouble(verb="patch", path="/nodes/", drop=True))
    outcome = await held(quiet_cluster, temporal, marked=PENDING)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert len(quiet_cluster.writes(verb="patch")) == 1


async def test_a_node_that_keeps_changing_is_given_up_after_a_limit(quiet_cluster):
    node = await quiet_cluster.add_node(marked=PENDING)

    class Contended(KubernetesApi):
        tries = 0

        def __init__(self):
            pass

        async def get(self, path):
            return await quiet_cluster.api.get(path)

        async def patch(self, path, body, kind):
            self.tries += 1
            raise (Conflict(409, "Conflict", "changed") if self.tries % 2 else Ambiguous("lost"))

    port = Contended()
    outcome = await change_node(port, request_for(node, Step.HOLD), lambda *_: {"spec": {}})
    assert (outcome.kind, outcome.reason) == (OutcomeKind.TRANSIENT, CONTENDED)
    assert port.tries == 8


async def test_a_change_between_read_and_patch_is_never_overwritten(quiet_cluster, temporal):
    """The second judgement sees the foreign taint that came in after the first."""
    node = await quiet_cluster.add_node(marked=mark(MarkState.PROBATION, undo=()), taints=[])
    request = request_for(node, Step.HOLD)
    foreign = {"key": "team", "value": "x", "effect": "NoSchedule"}
    get = quiet_cluster.api.get
    reads = 0

    async def get_then_change(path):
        nonlocal reads
        found = await get(path)
        reads += 1
        if reads == 1:
            await quiet_cluster.change_node({"spec": {"taints": [foreign]}})
        return found

    quiet_cluster.api.get = get_then_change
    outcome = await temporal.run(HoldActivities(quiet_cluster.api).hold, request)
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert {each.key for each in (await quiet_cluster.node()).taints} == {"team", HOLD_TAINT}


def test_every_patch_carries_the_guards_of_the_read_it_rests_on():
    _, node = seen_node()
    patch = guarded({"metadata": {"annotations": {"a": "b"}}}, node)
    assert patch["metadata"] == {
        "annotations": {"a": "b"},
        "uid": "u1",
        "resourceVersion": "7",
    }


def test_foreign_taints_stay_exactly_as_they_are():
    foreign = {"key": "team", "effect": "NoExecute", "timeAdded": "2026-11-29T00:00:00Z"}
    manifest, _ = seen_node(taints=[foreign, HOLD])
    assert taints_patch(manifest, without=HOLD_TAINT) == {"taints": [foreign]}
    bare, _ = seen_node(taints=[HOLD])
    assert taints_patch(bare, without=HOLD_TAINT) == {"taints": None}


def karpenter_node(**annotations):
    manifest, node = seen_node(marked=PENDING)
    manifest["metadata"]["labels"] = {"karpenter.sh/nodepool": "gpu"}
    manifest["metadata"]["annotations"] |= annotations
    return manifest, node


def test_karpenter_is_told_to_leave_the_repair_to_us_and_that_is_undone():
    manifest, node = karpenter_node()
    patch = judge_hold(manifest, node, REQUEST, now())
    assert isinstance(patch, dict)
    assert patch["metadata"]["annotations"][VETO] == "true"
    taken = parse_mark(patch["metadata"]["annotations"][MARK_ANNOTATION])
    assert taken.undo == (UNDO_TAINT, annotation_entry(VETO))
    manifest["metadata"]["annotations"][VETO] = "true"
    assert undo_patch(manifest, taken)["metadata"]["annotations"][VETO] is None


def test_a_veto_of_somebody_else_is_not_ours_to_undo():
    manifest, node = karpenter_node(**{VETO: "true"})
    patch = judge_hold(manifest, node, REQUEST, now())
    assert isinstance(patch, dict)
    assert parse_mark(patch["metadata"]["annotations"][MARK_ANNOTATION]).undo == (UNDO_TAINT,)
    assert VETO not in patch["metadata"]["annotations"]
