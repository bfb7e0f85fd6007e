"""What a recall says of the means: inside, by the provider, by Karpenter."""

from datetime import timedelta

import httpx
import pytest

from activities.adapters.provider import WebhookProvider
from activities.adapters.provider_access import ProviderAccess
from activities.kubelet import stale
from activities.means import MeansReader
from activities.no_provider import NoProvider
from activities.recall import Recall
from fleet.outcome import OutcomeKind
from fleet.step import Means, Step
from simulator.provider.server import CHANGES
from tests.cluster import now, request_for, rfc
from tests.means.karpenter import add_claim, define_node_claims
from tests.provider.machines import provider_in

OUTSIDE = {Means.PROVIDER, Means.POWER, Means.LAUNCH, Means.REPLACE}


class Nothing:
    async def past_attempts(self, workflow_id):
        return ()


@pytest.mark.parametrize(
    ("changes", "means"),
    [
        (CHANGES, OUTSIDE),
        ((), set()),
        (("restart",), {Means.PROVIDER}),
        (("stop", "start"), {Means.PROVIDER}),
        (("stop",), set()),
        (("power-cycle", "terminate"), {Means.POWER, Means.REPLACE}),
    ],
)
async def test_a_provider_is_good_for_what_it_says(quiet_cluster, tmp_path, changes, means):
    node = await quiet_cluster.add_node()
    async with provider_in(tmp_path, quiet_cluster, changes) as server:
        found = await MeansReader(quiet_cluster.api, server.provider).of(node)
    assert set(found) == {Means.INSIDE} | means


@pytest.mark.parametrize(
    ("ready", "lease_age", "inside"),
    [
        ("True", None, True),
        ("False", None, True),
        ("Unknown", None, False),
        ("Unknown", timedelta(seconds=5), True),
        ("Unknown", timedelta(minutes=5), False),
        ("False", timedelta(minutes=5), False),
        ("True", timedelta(minutes=5), True),
    ],
)
async def test_inside_needs_a_kubelet_that_answers(quiet_cluster, ready, lease_age, inside):
    node = await quiet_cluster.add_node(ready=ready)
    if lease_age is not None:
        await quiet_cluster.renew_kubelet_lease("n1", now() - lease_age)
    found = await MeansReader(quiet_cluster.api, NoProvider()).of(node)
    assert (Means.INSIDE in found) is inside


@pytest.mark.parametrize("spec", [{}, {"renewTime": None}, {"renewTime": "soon"}])
def test_a_lease_that_says_nothing_is_stale(spec):
    assert stale({"spec": spec}, now())
    fresh = {"renewTime": rfc(now())}
    assert not stale({"spec": fresh}, now())


async def test_a_node_of_karpenters_is_replaced_by_its_claim_and_not_launched(
    quiet_cluster, tmp_path
):
    await define_node_claims(quiet_cluster)
    node = await quiet_cluster.add_node()
    await add_claim(quiet_cluster)
    async with provider_in(tmp_path, quiet_cluster, ("launch",)) as server:
        found = await MeansReader(quiet_cluster.api, server.provider).of(node)
    assert found == (Means.INSIDE, Means.REPLACE)


async def test_a_provider_that_is_away_is_taken_for_one_that_can_but_for_a_launch(quiet_cluster):
    node = await quiet_cluster.add_node()
    async with httpx.AsyncClient() as http:
        away = WebhookProvider(ProviderAccess("http://127.0.0.1:9"), http, pauses=())
        found = await MeansReader(quiet_cluster.api, away).of(node)
    assert set(found) == {Means.INSIDE, *OUTSIDE} - {Means.LAUNCH}


async def test_recall_tells_the_means(quiet_cluster, temporal):
    node = await quiet_cluster.add_node()
    recall = Recall(Nothing(), MeansReader(quiet_cluster.api, NoProvider())).recall
    outcome = await temporal.run(recall, request_for(node, Step.RECALL))
    assert (outcome.kind, outcome.means) == (OutcomeKind.SUCCEEDED, (Means.INSIDE,))


async def test_a_node_that_is_gone_has_what_its_provider_can(quiet_cluster, tmp_path):
    node = await quiet_cluster.add_node()
    await quiet_cluster.raw.delete("/api/v1/nodes/n1")
    async with provider_in(tmp_path, quiet_cluster, ("terminate",)) as server:
        assert await MeansReader(quiet_cluster.api, server.provider).of(node) == (Means.REPLACE,)
