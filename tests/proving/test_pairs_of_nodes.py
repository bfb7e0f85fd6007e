"""Candidates of a trial in pairs and one pair of it, before the emulated API server."""

from dataclasses import replace
from datetime import timedelta

import pytest

from activities.pair import PairActivities
from activities.pinned_pod import PinnedPods
from activities.sweep import SweepActivities
from fleet.check import PAIRS
from fleet.finding import Finding, Verdict
from fleet.outcome import OutcomeKind
from fleet.pair import parse_place
from fleet.part import HOST
from fleet.proof import Proof, Why, format_proof
from fleet.proving import PairRequest, ProveTask
from fleet.step import NodeStepResult, Step
from policies.pairs_terms import Pairs
from policies.scopes import ScopeLabels
from simulator.apiserver.injection import Fault
from tests.cluster import BOOT, FAULT, SOON, now, report
from tests.proving.nodes import gpu_pod, remembers, serving, unproven

WELL = Finding(PAIRS, HOST, Verdict.OK, value=48e9)
HUNG = Finding(PAIRS, HOST, Verdict.UNKNOWN, code="pairs:hung")
BUSY = [Finding(PAIRS, HOST, Verdict.UNKNOWN, code="pairs:in-use")] * 2
ADDRESS = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}}


async def kept(cluster, name: str, why: Why = Why.PAIRS, **about) -> ProveTask:
    about = {**unproven(why), "name": name, "provider_id": f"c:///{name}", **about}
    node = await cluster.add_node(**about)
    await cluster.change_node(ADDRESS, name)
    return ProveTask(node, BOOT, why)


async def both(cluster, **changes) -> PairRequest:
    sides = await kept(cluster, "n1"), await kept(cluster, "n2", Why.ODD)
    plain = PairRequest("prove-pair-1", sides, now(), now() + SOON, 27_900, 5.0)
    return replace(plain, **changes)


def answering(**by_node: list[Finding]):
    """What each node's Pod leaves; nothing: it runs for ever. Unnamed nodes do well."""

    def on_step(pod):
        node = pod["spec"]["nodeName"]
        findings = by_node.get(node, [WELL])
        operation = pod["metadata"]["labels"]["gpumend.io/operation"]
        done = NodeStepResult.DONE if findings == [WELL] else NodeStepResult.FAILED
        said = report(operation, Step.VERIFY, done, findings=tuple(findings))
        return said if findings else None

    return on_step


def steps(cluster, start_limit: timedelta = SOON) -> PairActivities:
    return PairActivities(cluster.api, PinnedPods(cluster.api, "i", now, start_limit=start_limit))


async def test_a_pod_on_each_of_two_nodes_and_what_both_say(cluster, temporal):
    cluster.on_step = answering(n2=[HUNG])
    request = await both(cluster)
    outcome = await temporal.run(steps(cluster).pair, request)
    assert (outcome.kind, outcome.findings) == (OutcomeKind.SUCCEEDED, (WELL, HUNG))
    path = "/api/v1/namespaces/gpumend/pods"
    pods = (await cluster.raw.read(path))["items"]
    places = {}
    for pod in pods:
        assert pod["spec"]["hostNetwork"]
        command = pod["spec"]["containers"][0]["command"]
        places[pod["spec"]["nodeName"]] = parse_place(command[command.index("--pair") + 1])
    assert {name: each.side for name, each in places.items()} == {"n1": 0, "n2": 1}
    assert {(each.host, each.port, each.meeting) for each in places.values()} == {
        ("10.0.0.7", 27_900, "prove-pair-1")
    }
    again = await temporal.run(steps(cluster).pair, request)
    assert again == outcome
    assert len(cluster.writes(verb="create", path="/pods")) == 4, "asked for, and found there"
    assert await cluster.pods("gpumend") == {"step-prove-pair-1-0", "step-prove-pair-1-1"}


async def test_a_pod_that_never_starts_says_nothing_of_the_pair_and_is_taken_away(
    cluster, temporal
):
    cluster.on_step = answering()
    cluster.stuck.add("step-prove-pair-1-1")
    request = await both(cluster)
    soon = timedelta(seconds=1)
    outcome = await temporal.run(steps(cluster, start_limit=soon).pair, request)
    assert (outcome.kind, outcome.findings) == (OutcomeKind.TRANSIENT, ())
    assert "n2: never-started" in outcome.detail


@pytest.mark.parametrize(("said", "why"), [(BUSY, "pairs:in-use"), ([HUNG, WELL], "pairs:hung")])
async def test_a_side_that_did_not_come_to_one_answer_says_nothing(cluster, temporal, said, why):
    cluster.on_step = answering(n1=said)
    outcome = await temporal.run(steps(cluster).pair, await both(cluster))
    assert (outcome.kind, outcome.findings) == (OutcomeKind.TRANSIENT, ())
    assert why in outcome.detail


async def test_nothing_is_started_on_nodes_that_are_not_kept_for_it_any_more(cluster, temporal):
    request = await both(cluster)
    first, second = request.sides
    rebooted = replace(request, sides=(first, replace(second, boot_id="boot-2")))
    assert (await temporal.run(steps(cluster).pair, rebooted)).reason == "boot-changed"
    swapped = replace(request, sides=(replace(first, why=Why.SWEEP), second))
    assert (await temporal.run(steps(cluster).pair, swapped)).reason == "taint-gone"
    await cluster.add_pod(gpu_pod("job", "n2"))
    assert (await temporal.run(steps(cluster).pair, request)).reason == "in-use"
    await cluster.change_node({"status": {"addresses": []}})
    pod = "/api/v1/namespaces/default/pods/job"
    await cluster.raw.delete(pod, {"gracePeriodSeconds": 0})
    assert (await temporal.run(steps(cluster).pair, request)).reason == "no-address"
    assert cluster.writes() == []


async def candidates(cluster, temporal, pairs: Pairs | None = None):
    look = SweepActivities(cluster.api, now).pair_candidates
    return await temporal.env.run(look, "c1", pairs or Pairs(), ScopeLabels())


async def add(cluster, name: str, **about):
    return await cluster.add_node(name=name, provider_id=f"c:///{name}", **serving(**about))


async def test_idle_nodes_are_candidates_and_too_few_get_partners_that_were_tried_lately(
    quiet_cluster, temporal
):
    cluster = quiet_cluster
    for name in ("busy", "due", "late-1", "late-2", "late-3", "late-busy"):
        await add(cluster, name)
    await add(cluster, "other", gpus=4)
    await add(cluster, "sick", faults=(FAULT,))
    for name in ("busy", "late-busy"):
        await cluster.add_pod(gpu_pod(f"job-{name}", name))
    lately = remembers(format_proof(Proof(paired=now() - timedelta(days=1))))
    for name in ("late-1", "late-2", "late-3", "late-busy"):
        await cluster.change_node(lately, name)
    found = await candidates(cluster, temporal)
    (flock,) = found.flocks
    assert [each.node.name for each in flock.tasks] == ["due", "late-1", "late-2", "late-3"]
    assert {each.why for each in flock.tasks} == {Why.PAIRS}
    assert (found.room, found.due, found.looked_at) == (4, 3, 3)
    assert cluster.writes() == []


async def test_while_nodes_of_a_trial_are_out_no_pod_is_looked_at(quiet_cluster, temporal):
    await add(quiet_cluster, "idle")
    for name in ("n8", "n9"):
        await kept(quiet_cluster, name)
    found = await candidates(quiet_cluster, temporal)
    assert (found.flocks, found.room, found.looked_at) == ((), 2, 0)


async def test_an_answer_that_was_lost_makes_no_second_pod(cluster, temporal):
    cluster.on_step = answering()
    cluster.server.faults.order(Fault("create", "/pods", drop=True))
    outcome = await temporal.run(steps(cluster).pair, await both(cluster))
    assert outcome.kind is OutcomeKind.SUCCEEDED
    assert len(await cluster.pods("gpumend")) == 2
