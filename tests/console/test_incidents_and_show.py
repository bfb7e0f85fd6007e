"""What a person sees of the fleet and of one node, with either server away."""

import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.service import RPCError

from activities.adapters import temporal_reading
from activities.node_event import EVENTS, NodeEvent, manifest_of
from activities.search_attributes import at_start
from fleet.mark import MarkState
from fleet.names import DOMAIN
from tests.cluster import cluster_in, identity, mark, now
from tests.incidents.virtual import a_fault
from tests.temporal.fakes import Truth
from tests.temporal.running import Running, hurried, opened_now, running
from workflows.node_remediation import NodeRemediation

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEMORY = a_fault("gpu:3", "uncontained-memory")
HOT = a_fault("host", "thermal")


def opening_in(cluster, **about):
    opening = opened_now()
    node = replace(opening.node, cluster=cluster, **about)
    return replace(opening, node=node, scopes={"cluster": cluster, "pool": "training"})


@asynccontextmanager
async def an_incident(server, *, stage="hand-off", **about):
    """One that waits for a person, in a cluster of its own."""
    cluster = f"c-{uuid.uuid4()}"
    truth = Truth((HOT,))
    opening = opening_in(cluster, **about)
    async with running(server.client, truth, opening=opening) as run:
        await run.reached(stage)
        yield cluster, run
        with suppress(RPCError):  # a test may have ended it
            await run.handle.terminate()


async def listed(run: Running, command, *words):
    """The list lags behind."""
    found = []

    async def there():
        nonlocal found
        ended = await command("incidents", "--json", *words)
        assert ended.status == 0, ended.err
        found = [each for each in ended.json if each["workflow_id"] == run.handle.id]
        return bool(found)

    await run.until(there)
    return found[0]


async def test_an_open_incident_is_listed_with_what_it_waits_for(server, command, at_temporal):
    at_temporal(server)
    async with an_incident(server) as (cluster, run):
        row = await listed(run, command, "--cluster", cluster, "--step", "hand-off")
        assert (row["node"], row["pool"], row["fault"]) == ("n1", "training", "thermal")
        assert row["comes"]["kind"] == "hand-off"
        assert "look at thermal on host" in row["blocks"][0]
        text = await command("incidents", "--cluster", cluster)
        assert text.out.splitlines()[1].split()[:4] == ["n1", "training", "thermal", "hand-off"]
        none = await command("incidents", "--cluster", cluster, "--pool", "other")
        assert (none.status, none.out) == (0, "no open incident\n")


async def test_a_closed_incident_is_listed_with_its_end_on_request(server, command, at_temporal):
    at_temporal(server)
    async with an_incident(server) as (cluster, run):
        await run.handle.terminate()
        row = await listed(run, command, "--cluster", cluster, "--all")
        assert (row["open"], row["status"], row["end"]) == (False, "terminated", None)


async def test_a_run_that_nobody_works_on_is_listed_all_the_same(
    server, command, at_temporal, monkeypatch
):
    at_temporal(server)
    monkeypatch.setattr(temporal_reading, "ASK_TIMEOUT", timedelta(seconds=1))
    opening = opening_in(f"c-{uuid.uuid4()}")
    handle = await server.client.start_workflow(
        NodeRemediation.run,
        args=[opening, hurried(), None],
        id=opening.workflow_id,
        task_queue="nobody",
        search_attributes=at_start(opening),
    )
    run = Running(handle, Truth(()), server.client)
    row = await listed(run, command, "--cluster", opening.node.cluster)
    assert (row["stage"], row["comes"]) == ("hold", None)
    text = await command("incidents", "--cluster", opening.node.cluster)
    assert "(no worker answered)" in text.out
    await handle.terminate()


async def test_a_node_is_shown_from_both_sides(server, command, at_temporal, tmp_path, monkeypatch):
    at_temporal(server)
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(marked=mark(MarkState.OWNED))
        async with an_incident(server) as (name, run):
            await listed(run, command, "--cluster", name)
            ended = await command("show", "n1", "--cluster", name, "--json")
            assert ended.status == 0, ended.err
            shown = ended.json
            assert shown["kubernetes"]["hold"] == "uncontained-memory"
            assert shown["incident"]["workflow_id"] == run.handle.id
            assert shown["comes"]["kind"] == "hand-off"
            story = [each["what"] for each in shown["timeline"]]
            assert story[-1] == "decided"
            assert {"evidence", "held", "hold"} <= set(story)
            text = (await command("show", "n1", "--cluster", name)).out
            assert "next       handed to a person" in text
            assert "- look at thermal on host" in text


async def test_without_temporal_the_cluster_tells_what_it_knows(command, tmp_path, monkeypatch):
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(marked=mark(MarkState.PENDING))
        await cluster.change_node({"metadata": {"annotations": {f"{DOMAIN}/pause": "rack work"}}})
        event = NodeEvent(identity(), "i1", "IncidentDrained", "nothing runs there", "op1")
        await cluster.raw.created(EVENTS, manifest_of(event, now()))
        ended = await command("show", "n1")
        assert ended.status == 3
        assert "Temporal is away" in ended.err
        assert "event      IncidentDrained: nothing runs there" in ended.out
        assert "held       for uncontained-memory" in ended.out
        assert "paused     by annotation: rack work" in ended.out
        assert "evidence   uncontained-memory on gpu:3" in ended.out


async def test_without_the_api_server_the_run_tells_what_it_knows(server, command, at_temporal):
    at_temporal(server)
    async with an_incident(server) as (cluster, run):
        await listed(run, command, "--cluster", cluster)
        ended = await command("show", "n1", "--cluster", cluster)
        assert ended.status == 3
        assert "Kubernetes is away" in ended.err
        assert "next       handed to a person" in ended.out


async def test_a_name_that_no_node_has_is_answered_with_names_near_it(
    server, command, at_temporal, tmp_path, monkeypatch
):
    at_temporal(server)
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(name="gpu-17")
        ended = await command("show", "gpu-71")
        assert ended.status == 2
        assert "there is no node gpu-71" in ended.err
        assert "near it: gpu-17" in ended.err


async def test_with_both_away_both_are_named(command):
    ended = await command("show", "n1")
    assert ended.status == 3
    assert "Kubernetes is away" in ended.err
    assert "Temporal is away" in ended.err


async def test_a_list_needs_temporal(command):
    ended = await command("incidents", "--json")
    assert (ended.status, ended.out) == (3, "")
    assert "Temporal is away" in ended.err


@pytest.mark.parametrize(
    "words", [("show", "N1"), ("incidents", "--pool", "a'b"), ("incidents", "--step", "nowhere")]
)
async def test_what_cannot_be_a_name_is_bad_usage(command, words):
    assert (await command(*words)).status == 2
