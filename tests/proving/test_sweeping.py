"""Candidates and leases of a sweep, before the emulated API server."""

from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities.coalescer import Coalescer
from activities.lease import BudgetActivities
from activities.proof_events import event_of_proof
from activities.prove_lease import ProveLeaseActivities
from activities.scope_claims import ScopeClaims
from activities.sweep import SweepActivities
from fleet.errors import Transient
from fleet.mark import MarkState
from fleet.names import incident_workflow_id, prove_workflow_id
from fleet.outcome import Outcome, OutcomeKind
from fleet.proof import Proof, Why, format_proof
from fleet.proving import ProofEnd
from fleet.reason import QUEUED
from policies import budget
from policies.document import load
from policies.prove_terms import ProveTerms
from policies.proving_terms import Sweep
from simulator.apiserver.injection import Fault
from tests.budget.test_lease_activities import Lender
from tests.cluster import FAULT, identity, mark, now
from tests.proving.nodes import a_request, gpu_pod, remembers, serving, unproven

WEEKLY = Sweep(every=timedelta(days=7))
TERMS = ProveTerms.of(load("budgets: [{scope: cluster, max: 1}]\nfaults: {}", "p"))


async def add(cluster, name: str, **about):
    return await cluster.add_node(name=name, provider_id=f"c:///{name}", **serving(**about))


async def candidates(cluster, temporal, sweep: Sweep = WEEKLY):
    return await temporal.env.run(SweepActivities(cluster.api, now).candidates, "c1", sweep)


async def test_only_idle_healthy_nodes_whose_proof_is_old_are_candidates(quiet_cluster, temporal):
    cluster = quiet_cluster
    for name in ("busy", "fresh", "old", "never"):
        await add(cluster, name)
    await add(cluster, "sick", faults=(FAULT,))
    await add(cluster, "cordoned", unschedulable=True)
    await add(cluster, "marked", marked=mark())
    await cluster.add_pod(gpu_pod("job", "busy"))
    for name, days in (("fresh", 1), ("old", 8)):
        proven = Proof(now() - timedelta(days=days), now() - timedelta(days=days))
        await cluster.change_node(remembers(format_proof(proven)), name)
    found = await candidates(cluster, temporal)
    assert [each.node.name for each in found.tasks] == ["never", "old"]
    assert {each.why for each in found.tasks} == {Why.SWEEP}
    assert (found.room, found.due, found.looked_at) == (1, 3, 3)
    assert cluster.writes() == []


async def test_while_a_node_of_a_sweep_is_out_no_pod_is_looked_at(quiet_cluster, temporal):
    await add(quiet_cluster, "idle")
    out = unproven(Why.FOUND, name="n9", provider_id="c:///9")
    await quiet_cluster.add_node(**out)
    found = await candidates(quiet_cluster, temporal)
    assert (found.tasks, found.room, found.due, found.looked_at) == ((), 0, 1, 0)


async def test_a_server_that_is_away_is_asked_again_by_temporal(quiet_cluster, temporal):
    quiet_cluster.server.faults.order(Fault("list", "/nodes", times=9, code=503))
    with pytest.raises(ApplicationError) as failed:
        await candidates(quiet_cluster, temporal)
    assert not failed.value.non_retryable


@pytest.fixture
def lender():
    return Lender()


@pytest.fixture
def leases(quiet_cluster, lender):
    claims = ScopeClaims(quiet_cluster.api, now)
    return ProveLeaseActivities(claims, Coalescer(lender.exchange))


async def test_a_sweep_has_its_lease_at_once_or_leaves_no_ask_behind(quiet_cluster, lender, leases):
    first = a_request(await add(quiet_cluster, "n1"), Why.SWEEP)
    second = a_request(await add(quiet_cluster, "n2"), Why.SWEEP)
    terms = TERMS.lease(now())
    assert (await leases.lease(first, terms)).kind is OutcomeKind.SUCCEEDED
    refused = await leases.lease(second, terms)
    assert (refused.kind, refused.reason) == (OutcomeKind.TRANSIENT, QUEUED)
    assert "lends 1 at once" in refused.detail
    assert lender.ledger.waiting == ()
    assert lender.ledger.holders == {prove_workflow_id("c1", "n1", first.task.node.machine)}
    assert (await leases.give_back(first)).kind is OutcomeKind.SUCCEEDED
    assert (await leases.lease(second, terms)).kind is OutcomeKind.SUCCEEDED


async def test_a_frozen_budget_lends_a_sweep_nothing(quiet_cluster, lender, leases):
    node = await add(quiet_cluster, "n1")
    lender.ledger = budget.freeze(lender.ledger, "ada", "holidays", now())
    refused = await leases.lease(a_request(node, Why.SWEEP), TERMS.lease(now()))
    assert refused.kind is OutcomeKind.TRANSIENT
    assert lender.ledger.waiting == ()


async def test_a_node_that_is_gone_and_a_budget_that_is_away_lend_nothing(
    quiet_cluster, lender, leases
):
    node = await add(quiet_cluster, "n1")
    gone = a_request(replace(node, name="n9"), Why.SWEEP)
    assert (await leases.lease(gone, TERMS.lease(now()))).kind is OutcomeKind.SUPERSEDED
    lender.fails = Transient("no")
    away = await leases.lease(a_request(node, Why.SWEEP), TERMS.lease(now()))
    assert (away.kind, away.reason) == (OutcomeKind.TRANSIENT, "unreachable")
    assert lender.ledger.holders == set()


class Closed:
    """Every run is over."""

    async def grant(self, workflow_id: str) -> bool:
        return False

    async def stage(self, workflow_id: str) -> str | None:
        return None


async def test_the_lease_of_a_proof_that_is_over_is_free_whatever_mark_the_node_has(quiet_cluster):
    machine = identity("n1", provider_id="c:///n1").machine
    owned = mark(MarkState.OWNED, machine=machine)
    node = await add(quiet_cluster, "n1", marked=owned)
    proof = prove_workflow_id("c1", "n1", node.machine)
    incident = incident_workflow_id("c1", "n1", node.machine)
    looks = BudgetActivities(Closed(), quiet_cluster.api).look_at_leases
    assert await looks({proof: "n1", incident: "n1"}) == {proof: "over", incident: "open"}


@pytest.mark.parametrize(
    ("step", "end", "kind", "reason"),
    [
        ("prove-taint", ProofEnd.UNKNOWN, OutcomeKind.SUCCEEDED, "NodeSwept"),
        ("prove-taint", ProofEnd.UNKNOWN, OutcomeKind.CANCELLED, None),
        ("prove", ProofEnd.UNKNOWN, OutcomeKind.SUCCEEDED, None),
        ("prove-end", ProofEnd.PROVEN, OutcomeKind.SUCCEEDED, "NodeProven"),
        ("prove-end", ProofEnd.PROVEN, OutcomeKind.TRANSIENT, None),
        ("prove-end", ProofEnd.FOUND, OutcomeKind.SUCCEEDED, "NodeNotProven"),
        ("prove-end", ProofEnd.UNKNOWN, OutcomeKind.SUCCEEDED, "NodeNotProven"),
        ("prove-end", ProofEnd.STOPPED, OutcomeKind.SUCCEEDED, None),
        ("prove-lease", ProofEnd.UNKNOWN, OutcomeKind.SUCCEEDED, None),
    ],
)
def test_what_people_at_the_node_are_told(step, end, kind, reason):
    detail = "1 Pods may use its GPUs: default/secret"
    event = event_of_proof(step, a_request(identity(), end=end), Outcome(kind, "in-use", detail))
    assert (event.reason if event else None) == reason
    assert event is None or "secret" not in event.message
