"""What people tell an incident, a node and the budget from a shell."""

import io
import json
import uuid
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.search_attributes import at_start
from console.order import shown
from fleet.decision import Ask, Basis
from fleet.mark import MarkState
from fleet.names import MANAGED_LABEL, OPEN_ANNOTATION
from fleet.order import Verb
from intake.breaker_record import (
    CONFIG_MAPS,
    NAME,
    PATH,
    CloseOrder,
    close_key,
    format_circuit,
    parse_order,
)
from policies.breaker import Circuit, Phase
from tests.cluster import cluster_in, mark
from tests.console.test_incidents_and_show import an_incident, listed, opening_in
from tests.temporal.fakes import Truth
from tests.temporal.running import Running
from workflows.node_remediation import Plan

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_order_is_taken_with_who_and_why(server, command, at_temporal):
    at_temporal(server)
    async with an_incident(server) as (cluster, run):
        await listed(run, command, "--cluster", cluster)
        words = ("--cluster", cluster, "--reason", "fixed it", "--actor", "ada")
        ended = await command("resume", "n1", *words)
        assert (ended.status, ended.out) == (0, "n1: resume: taken\n"), ended.err
        shown = (await command("show", "n1", "--cluster", cluster)).out
        assert "order      resume by ada: fixed it" in shown


async def test_an_order_that_makes_no_sense_is_refused_in_the_workflows_words(
    server, command, at_temporal
):
    at_temporal(server)
    async with an_incident(server) as (cluster, run):
        await listed(run, command, "--cluster", cluster)
        words = ("--cluster", cluster, "--reason", "why", "--ask", "q1")
        ended = await command("approve", "n1", *words)
        assert ended.status == 1
        assert ended.err == "gpumend approve: no question waits for a yes or a no\n"


async def test_an_order_for_a_node_without_an_incident_says_so(server, command, at_temporal):
    at_temporal(server)
    ended = await command("pause", "n1", "--cluster", "c-none", "--reason", "why")
    assert ended.status == 2
    assert "Temporal has no open incident of n1 in cluster c-none" in ended.err


@pytest.mark.parametrize("verb", list(Verb))
async def test_every_order_needs_a_reason(command, verb):
    assert (await command(verb, "n1")).status == 2
    assert (await command(verb, "n1", "--reason", "   ")).status == 2


async def test_without_temporal_no_order_is_given(command):
    ended = await command("pause", "n1", "--reason", "why")
    assert ended.status == 3
    assert "Temporal is away" in ended.err


QUESTION = Ask(
    question="may replace be done to n1?",
    answers=("approve", "deny"),
    until=datetime(2026, 11, 29, 16, tzinfo=UTC),
    expiry="hand-off",
    reasons=("nothing milder is left",),
    basis=Basis(datetime(2026, 11, 29, 12, tzinfo=UTC), ("gpu-lost on gpu:3 (xid:79)",), "i", "p"),
    id="replace-7",
)


@workflow.defn(name="node-remediation")
class Asking:
    """An incident that only asks."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: bool(self.said))

    @workflow.query
    def plan(self, now: datetime | None = None) -> Plan:
        return Plan(QUESTION, "", None, None)

    @workflow.update
    def approve(self, said: dict[str, str]) -> str:
        self.said = said
        return "approve: taken"


@asynccontextmanager
async def a_question(server):
    cluster, queue = f"c-{uuid.uuid4()}", f"q-{uuid.uuid4()}"
    opening = opening_in(cluster)
    worker = Worker(
        server.client,
        task_queue=queue,
        workflows=[Asking],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        handle = await server.client.start_workflow(
            Asking.run,
            id=opening.workflow_id,
            task_queue=queue,
            search_attributes=at_start(opening),
        )
        yield Running(handle, Truth(()), server.client), cluster


async def test_a_yes_without_the_questions_id_shows_the_question_and_sends_nothing(
    server, command, at_temporal
):
    at_temporal(server)
    async with a_question(server) as (run, cluster):
        await listed(run, command, "--cluster", cluster)
        ended = await command("approve", "n1", "--cluster", cluster, "--reason", "spares are here")
        assert ended.status == 2
        assert "may replace be done to n1?" in ended.err
        assert "gpumend approve n1 --ask replace-7 --reason 'spares are here'" in ended.err
        words = ("--reason", "spares are here", "--ask", "replace-7")
        taken = await command("approve", "n1", "--cluster", cluster, *words, "--actor", "ada")
        assert taken.status == 0, taken.err
    await run.handle.result()


@pytest.mark.parametrize(("typed", "status"), [("replace-7\n", 0), ("yes\n", 2), ("", 2)])
async def test_on_a_terminal_the_id_is_typed_by_who_has_read_the_question(
    server, command, at_temporal, monkeypatch, typed, status
):
    at_temporal(server)
    async with a_question(server) as (run, cluster):
        await listed(run, command, "--cluster", cluster)
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        ended = await command("approve", "n1", "--cluster", cluster, "--reason", "why")
        assert ended.status == status, ended.err
        await run.handle.terminate() if status else await run.handle.result()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_a_question_is_shown_with_what_it_rests_on():
    assert shown(QUESTION)[1:] == (
        "  - nothing milder is left",
        "  - gpu-lost on gpu:3 (xid:79)",
        "  id: replace-7",
    )


async def test_a_persons_finding_is_written_on_the_node(command, tmp_path, monkeypatch):
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(marked=None, taints=[], faults=())
        words = ("--fault", "slow", "--reason", "ranks wait for it", "--actor", "ada")
        ended = await command("open", "n1", *words)
        assert ended.status == 0, ended.err
        node = await cluster.raw.read("/api/v1/nodes/n1")
        assert json.loads(node["metadata"]["annotations"][OPEN_ANNOTATION]) == {
            "fault": "slow",
            "reason": "ranks wait for it",
            "actor": "ada",
        }
        again = await command("open", "n1", *words)
        assert again.status == 1
        assert "asked for already" in again.err


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"marked": mark(MarkState.OWNED)}, "has incident"),
        ({"marked": None, "labels": {MANAGED_LABEL: "false"}}, "opted out by label"),
    ],
)
async def test_a_node_that_cannot_be_opened_says_why(command, tmp_path, monkeypatch, about, says):
    about = dict(about)
    labels = about.pop("labels", None)
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(**about)
        if labels:
            await cluster.change_node({"metadata": {"labels": labels}})
        ended = await command("open", "n1", "--fault", "slow", "--reason", "why")
        assert ended.status == 1
        assert says in ended.err


async def test_a_finding_on_no_node_names_nodes_near_it(command, tmp_path, monkeypatch):
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        await cluster.add_node(name="gpu-17")
        ended = await command("open", "gpu-71", "--fault", "slow", "--reason", "why")
        assert (ended.status, "near it: gpu-17" in ended.err) == (2, True)
    away = await command("open", "n1", "--fault", "slow", "--reason", "why")
    assert away.status == 3


NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
CIRCUIT = Circuit("pool/training", Phase.OPEN, NOON, NOON, cause="40% of it has gpu-lost")


async def test_a_breaker_is_shown_and_closed_by_its_scope(command, tmp_path, monkeypatch):
    async with cluster_in(tmp_path, kubelet=False) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        assert (await command("close-breaker")).out == "no breaker is open\n"
        data = {"pool.training": format_circuit(CIRCUIT), "rack.r1": "{"}
        await cluster.raw.created(CONFIG_MAPS, {"metadata": {"name": NAME}, "data": data})
        shown = await command("close-breaker")
        assert shown.status == 1
        assert "40% of it has gpu-lost" in shown.out
        assert (await command("close-breaker", "pool/training")).status == 2
        unknown = await command("close-breaker", "pool/other", "--reason", "why")
        assert (unknown.status, "open are: pool/training, rack.r1" in unknown.err) == (2, True)
        words = ("--reason", "the new agent was wrong", "--actor", "ada")
        ended = await command("close-breaker", "pool/training", *words)
        assert ended.status == 0, ended.err
        said = (await cluster.raw.read(PATH))["data"][close_key("pool.training")]
        assert parse_order(said) == CloseOrder("ada", "the new agent was wrong")
    away = await command("close-breaker", "pool/training", "--reason", "why")
    assert away.status == 3
