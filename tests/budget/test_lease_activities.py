"""The activities `lease`, `give-back` and `look-at-leases`, before the emulated API server."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from activities.coalescer import Coalescer
from activities.lease import BudgetActivities, LeaseActivities
from activities.scope_claims import ScopeClaims
from fleet.census import Census
from fleet.errors import Ambiguous, Refused, Transient
from fleet.mark import MarkState
from fleet.outcome import OutcomeKind
from fleet.reason import QUEUED
from fleet.step import Step
from policies import budget, budget_look
from policies.budget_use import Use
from policies.document import load
from policies.exchange import Answer, Batch
from policies.lease_terms import LeaseTerms
from policies.ledger import Ask, Claim, Ledger
from simulator.apiserver.injection import Fault
from tests.cluster import mark, now, request_for

SINCE = datetime(2026, 11, 29, tzinfo=UTC)
TERMS = LeaseTerms.of(load("budgets: [{scope: cluster, max: 1}]\nfaults: {}", "test"), SINCE)


COUNTED = Ledger(census=Census(SINCE), counted=SINCE)


class Lender:
    """The arithmetic without Temporal; `answer_lost` takes a batch and loses the answer once."""

    def __init__(self) -> None:
        self.ledger = COUNTED
        self.answer_lost = False
        self.fails: Exception | None = None

    async def exchange(self, batch: Batch) -> Answer:
        if self.fails:
            raise self.fails
        self.ledger = budget.give(self.ledger, frozenset(batch.gives), SINCE)
        self.ledger = budget.hand_off(self.ledger, batch.hand_offs, SINCE)
        self.ledger = budget.ask(self.ledger, batch.asks, SINCE)
        if self.answer_lost:
            self.answer_lost = False
            raise Ambiguous("the answer was lost")
        holders = self.ledger.holders
        waits = [each for each in batch.asks if each.incident not in holders]
        use = Use(self.ledger)
        return Answer(tuple(holders), {e.incident: use.why(e) for e in waits})


@pytest.fixture
def lender():
    return Lender()


@pytest.fixture
def leases(quiet_cluster, lender):
    """As another process would have them: nothing is shared but the budget."""
    return lambda: LeaseActivities(ScopeClaims(quiet_cluster.api, now), Coalescer(lender.exchange))


async def request_of(cluster, name="n1"):
    node = await cluster.add_node(name=name, provider_id=f"c:///{name}")
    return request_for(node, Step.LEASE)


async def test_an_ask_is_granted_or_queued_with_what_stops_it(quiet_cluster, leases):
    first, second = await request_of(quiet_cluster), await request_of(quiet_cluster, "n2")
    lent = await leases().lease(first, TERMS)
    assert (lent.kind, lent.detail) == (OutcomeKind.SUCCEEDED, "cluster/c1 of 1")
    queued = await leases().lease(second, TERMS)
    assert (queued.kind, queued.reason) == (OutcomeKind.TRANSIENT, QUEUED)
    assert queued.detail == "cluster/c1 lends 1 at once"
    assert (await leases().give_back(first, TERMS)).kind is OutcomeKind.SUCCEEDED
    assert (await leases().lease(second, TERMS)).kind is OutcomeKind.SUCCEEDED


async def test_a_lease_whose_answer_was_lost_is_found_and_not_lent_twice(
    quiet_cluster, leases, lender
):
    request = await request_of(quiet_cluster)
    lender.answer_lost = True
    assert (await leases().lease(request, TERMS)).kind is OutcomeKind.TRANSIENT
    assert (await leases().lease(request, TERMS)).kind is OutcomeKind.SUCCEEDED
    assert len(lender.ledger.leases) == 1
    assert (await leases().give_back(request, TERMS)).kind is OutcomeKind.SUCCEEDED
    assert (await leases().give_back(request, TERMS)).kind is OutcomeKind.SUCCEEDED
    assert lender.ledger == COUNTED


async def test_a_lease_given_back_for_a_hand_off_leaves_the_node_with_people(
    quiet_cluster, leases, lender
):
    first, second = await request_of(quiet_cluster), await request_of(quiet_cluster, "n2")
    await leases().lease(first, TERMS)
    handed = replace(first, makes_way_for=Step.HAND_OFF)
    assert (await leases().give_back(handed, TERMS)).kind is OutcomeKind.SUCCEEDED
    queued = await leases().lease(second, TERMS)
    assert queued.detail == "cluster/c1 lends 1 at once (0 lent, 1 with people)"
    await quiet_cluster.raw.delete("/api/v1/nodes/n1")
    assert (await leases().give_back(handed, TERMS)).kind is OutcomeKind.SUCCEEDED
    assert (await leases().lease(second, TERMS)).kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Transient("away"), OutcomeKind.TRANSIENT),
        (Ambiguous("lost"), OutcomeKind.TRANSIENT),
        (Refused(0, "budget-refused", "no"), OutcomeKind.PERMANENT),
    ],
)
async def test_a_budget_that_does_not_answer_lends_nothing(
    quiet_cluster, leases, lender, problem, kind
):
    request = await request_of(quiet_cluster)
    lender.fails = problem
    assert (await leases().lease(request, TERMS)).kind is kind
    assert (await leases().give_back(request, TERMS)).kind is kind


@pytest.mark.parametrize("code", [410, 429, 500])
async def test_an_api_server_in_trouble_is_asked_again_and_not_handed_off(
    quiet_cluster, leases, code
):
    request = await request_of(quiet_cluster)
    quiet_cluster.server.faults.order(Fault(verb="get", path="/nodes/n1", code=code))
    assert (await leases().lease(request, TERMS)).kind is OutcomeKind.TRANSIENT
    assert (await leases().lease(request, TERMS)).kind is OutcomeKind.SUCCEEDED


async def test_a_node_that_is_gone_gets_no_lease(quiet_cluster, leases):
    request = await request_of(quiet_cluster)
    await quiet_cluster.raw.delete("/api/v1/nodes/n1")
    assert (await leases().lease(request, TERMS)).kind is OutcomeKind.SUPERSEDED


class Runs:
    """Which incidents are open, as far as can be told."""

    def __init__(self, *open_ids: str, unknown: str = "", at: str = "reboot") -> None:
        self.open_ids = open_ids
        self.unknown = unknown
        self.at = at

    async def stage(self, workflow_id: str) -> str | None:
        if workflow_id == self.unknown:
            raise Transient("away")
        return self.at if workflow_id in self.open_ids else None

    async def grant(self, workflow_id: str) -> bool:
        return await self.stage(workflow_id) is not None


async def over(cluster, runs, **marked):
    """Whether the lease of n1's incident is over, on a node with such a mark."""
    node = await cluster.add_node(marked=mark(machine="m1", **marked) if marked else None)
    incident = f"node/c1/{node.name}/m1"
    found = await BudgetActivities(runs, cluster.api).look_at_leases({incident: node.name})
    return found == {incident: "over"}


@pytest.mark.parametrize(
    ("marked", "freed"),
    [
        ({"state": MarkState.OWNED}, False),  # the next run adopts it, lease and all
        ({"state": MarkState.PENDING}, True),
        ({"state": MarkState.PROBATION}, True),
        ({}, True),
    ],
)
async def test_a_closed_run_keeps_its_lease_only_while_its_node_is_marked_as_owned(
    quiet_cluster, marked, freed
):
    assert await over(quiet_cluster, Runs(), **marked) is freed


async def test_an_open_run_keeps_its_lease(quiet_cluster):
    assert not await over(quiet_cluster, Runs("node/c1/n1/m1"))


async def test_another_machine_that_owns_the_name_keeps_nobody_elses_lease(quiet_cluster):
    await quiet_cluster.add_node(marked=mark(machine="m2"))
    lender = BudgetActivities(Runs(), quiet_cluster.api)
    assert await lender.look_at_leases({"node/c1/n1/m1": "n1"}) == {"node/c1/n1/m1": "over"}


async def test_an_incident_that_waits_for_a_person_is_found_with_people(quiet_cluster):
    lender = BudgetActivities(Runs("node/c1/n1/m1", at="hand-off"), quiet_cluster.api)
    assert await lender.look_at_leases({"node/c1/n1/m1": "n1"}) == {"node/c1/n1/m1": "with-people"}


async def test_a_node_whose_incident_waits_for_an_answer_stays_with_people(quiet_cluster):
    lender = BudgetActivities(Runs("node/c1/n1/m1", at="ask"), quiet_cluster.api)
    found = await lender.look_at_leases({"node/c1/n1/m1": "n1"})
    asker = Ask("node/c1/n1/m1", "n1", (Claim("cluster/c1", 1, hand_offs=True),), SINCE)
    ledger = budget.hand_off(Ledger(), [asker], SINCE)
    after = budget_look.looked(ledger, [asker.incident], found, now(), now())
    assert Use(after).handed_off("cluster/c1") == 1


async def test_what_cannot_be_told_keeps_one_lease_and_frees_the_others(quiet_cluster):
    lender = BudgetActivities(Runs(unknown="node/c1/n1/m1"), quiet_cluster.api)
    leases = {"node/c1/n1/m1": "n1", "node/c1/n2/m2": "n2"}
    assert await lender.look_at_leases(leases) == {"node/c1/n2/m2": "over"}
    await quiet_cluster.raw.created(
        "/api/v1/nodes",
        {"metadata": {"name": "n2", "annotations": {"gpumend.io/incident": "{cut"}}},
    )
    assert await lender.look_at_leases(leases) == {}


async def test_those_who_are_over_are_returned_when_grants_are_told(quiet_cluster):
    lender = BudgetActivities(Runs("node/c1/n1/m1"), quiet_cluster.api)
    assert await lender.grant(["node/c1/n1/m1", "node/c1/n2/m2"]) == ["node/c1/n2/m2"]
