"""What a lease would use, read from a cluster: labels, sizes, jobs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from activities.scope_claims import FRESH, ScopeClaims
from fleet.errors import NotFound
from fleet.node import NodeIdentity
from policies.document import load
from policies.lease_terms import LeaseTerms
from policies.ledger import Claim
from simulator.apiserver.injection import Fault
from tests.cluster import pod_manifest, stopped

NOW = datetime(2026, 11, 29, tzinfo=UTC)
RACK = "topology.kubernetes.io/rack"
JOB = "gpumend.io/job"


def terms(budgets: str) -> LeaseTerms:
    return LeaseTerms.of(load(f"budgets: [{budgets}]\nfaults: {{}}", "test"), NOW)


async def of(claims: ScopeClaims, node: NodeIdentity, asked: LeaseTerms) -> tuple[Claim, ...]:
    ask = await claims.ask("node/c1/n/m", node, asked)
    return ask.claims


async def three_nodes(cluster):
    nodes = [await cluster.add_node(name=f"n{n}", provider_id=f"c:///{n}") for n in (1, 2, 3)]
    for name in ("n1", "n2"):
        await cluster.raw.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {RACK: "r7"}}})
    return nodes


async def add_job_pod(cluster, name: str, node: str, job: str, namespace: str = "default", **about):
    pod = pod_manifest(name, node, namespace=namespace)
    pod["metadata"]["labels"][JOB] = job
    pod["status"] = about.get("status", pod["status"])
    await cluster.add_pod(pod)


async def test_a_share_counts_the_nodes_of_the_scope_and_allows_one_at_least(quiet_cluster):
    n1, _, n3 = await three_nodes(quiet_cluster)
    claims = ScopeClaims(quiet_cluster.api, lambda: NOW)
    asked = terms("{scope: cluster, max: 70%}, {scope: rack, max: 10%}")
    assert await of(claims, n1, asked) == (
        Claim("cluster/c1", 2, hand_offs=True),
        Claim("rack/r7", 1),
    )
    assert await of(claims, n3, asked) == (Claim("cluster/c1", 2, hand_offs=True),)


async def test_a_job_is_counted_by_the_nodes_it_runs_on_and_finished_pods_are_of_no_job(
    quiet_cluster,
):
    n1, _, n3 = await three_nodes(quiet_cluster)
    for number in (1, 2, 3):
        await add_job_pod(quiet_cluster, f"a{number}", f"n{number}", "big")
    await add_job_pod(quiet_cluster, "b1", "n1", "done", status=stopped())
    claims = ScopeClaims(quiet_cluster.api, lambda: NOW)
    assert await of(claims, n1, terms("{scope: job, max: 67%}")) == (Claim("job/default/big", 2),)
    await add_job_pod(quiet_cluster, "b3", "n3", "done")
    assert await of(claims, n3, terms("{scope: job, max: 1}")) == (
        Claim("job/default/big", 1),
        Claim("job/default/done", 1),
    )


async def test_labels_of_the_node_are_read_for_each_ask_and_sizes_now_and_then(quiet_cluster):
    n1, *_ = await three_nodes(quiet_cluster)
    clock = [NOW]
    claims = ScopeClaims(quiet_cluster.api, lambda: clock[0])
    asked = terms("{scope: cluster, max: 50%}, {scope: rack, max: 1}")
    await of(claims, n1, asked)
    await quiet_cluster.raw.patch("/api/v1/nodes/n1", {"metadata": {"labels": {RACK: "r8"}}})
    await quiet_cluster.add_node(name="n4", provider_id="c:///4")
    assert await of(claims, n1, asked) == (
        Claim("cluster/c1", 1, hand_offs=True),
        Claim("rack/r8", 1),
    )
    clock[0] += FRESH
    assert (await of(claims, n1, asked))[0] == Claim("cluster/c1", 2, hand_offs=True)


async def test_a_node_that_is_gone_has_no_claims_to_make(quiet_cluster):
    n1, *_ = await three_nodes(quiet_cluster)
    with pytest.raises(NotFound):
        await of(
            ScopeClaims(quiet_cluster.api, lambda: NOW),
            replace(n1, name="n9"),
            terms("{scope: cluster, max: 1}"),
        )


async def test_a_list_that_failed_is_not_kept(quiet_cluster):
    n1, *_ = await three_nodes(quiet_cluster)
    claims = ScopeClaims(quiet_cluster.api, lambda: NOW + timedelta(days=1))
    quiet_cluster.server.faults.order(Fault(verb="list", path="/nodes", times=1, code=500))
    with pytest.raises(Exception, match="500"):
        await of(claims, n1, terms("{scope: cluster, max: 1%}"))
    assert await of(claims, n1, terms("{scope: cluster, max: 1%}")) == (
        Claim("cluster/c1", 1, hand_offs=True),
    )
