"""Trials in pairs on a real server: the steps on nodes and the pairs are scripted."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner

from fleet import names
from fleet.check import PAIRS
from fleet.finding import Finding, Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import HOST
from fleet.proof import Why
from fleet.proving import OPERATIONS, PairRequest, ProofEnd, ProveTask
from policies.document import load
from policies.flocks import Flock, Flocks
from policies.pairs_terms import Pairs
from policies.prove_terms import ProveTerms
from policies.scopes import ScopeLabels
from tests.temporal.running import LONGEST, record
from tests.temporal.test_proofs import DONE, FAULT, FULL, UNTOLD, WORK, Script, a_task
from workflows.keep import KeepForPairs
from workflows.pairs import TryInPairs
from workflows.prove import ProveNode
from workflows.sandbox import RUNNER
from workflows.sweep import Swept

pytestmark = pytest.mark.asyncio(loop_scope="session")
FAST = UnsandboxedWorkflowRunner()
"""The sandbox imports anew for each of many children: one test of them is enough."""
KEEPS, LETS_GO = ["prove-lease", "prove-taint"], ["prove-give-back"]


def terms(text: str = "{}") -> ProveTerms:
    policy = f"faults: {{}}\nproving: {{tries: 2, pairs: {text}}}"
    return ProveTerms.of(load(policy, "p"))


@dataclass
class World(Script):
    """Nodes of which some are bad, and pairs of them. `untold` pairs end without a word."""

    bad: set[str] = field(default_factory=set)
    untold: bool = False
    flocks: Flocks = field(default_factory=lambda: Flocks((), 4, 0, 0))
    pairs: list[PairRequest] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False
    paired: list[str] = field(default_factory=list)

    def of(self, *nodes: str, why: Why = Why.PAIRS) -> "World":
        """With these nodes in one flock, under names of their own."""
        tasks = tuple(a_task(why, f"{each}-{uuid.uuid4()}") for each in nodes)
        self.flocks = Flocks((Flock("pool/a", tasks, False),), 4, len(tasks), len(tasks))
        return self

    def steps_of(self, node: str) -> list[str]:
        return [
            f"{name} {asked.end}" if name == "prove-end" else name
            for name, asked in self.asked
            if asked.task.node.name.startswith(f"{node}-")
        ]

    @activity.defn(name="pair-candidates")
    async def look(self, cluster: str, pairs: Pairs, scopes: ScopeLabels) -> Flocks:
        assert cluster
        assert pairs.at_once
        assert scopes.pool
        return self.flocks

    @activity.defn(name="pair")
    async def pair(self, request: PairRequest) -> Outcome:
        self.pairs.append(request)
        self.begun.set()
        both = [each.node.name for each in request.sides]
        assert not set(both) & set(self.paired), "a node is in one pair at a time"
        self.paired += both
        try:
            while self.waits:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return WORK
        finally:
            self.paired = [each for each in self.paired if each not in both]
        if self.untold:
            return UNTOLD
        failed = any(each.split("-")[0] in self.bad for each in both)
        verdict, code = (Verdict.UNKNOWN, "pairs:hung") if failed else (Verdict.OK, "")
        said = Finding(PAIRS, HOST, verdict, code=code, value=0.0 if failed else 48e9)
        return Outcome(OutcomeKind.SUCCEEDED, findings=(said, said))


@asynccontextmanager
async def trying(
    client: Client,
    world: World,
    given: ProveTerms | None = None,
    runner: WorkflowRunner = FAST,
) -> AsyncIterator[WorkflowHandle[TryInPairs, Swept]]:
    queue = f"q-{uuid.uuid4()}"
    steps = world.steps("prove-taint", "prove", "prove-end")
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[TryInPairs, KeepForPairs, ProveNode],
        activities=[*steps, world.look, world.pair],
        workflow_runner=runner,
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    )
    lending = [world.lease, *world.steps("prove-give-back")]
    lender = Worker(client, task_queue=f"{queue}{names.BUDGET_SUFFIX}", activities=lending)
    async with worker, lender, asyncio.timeout(LONGEST):
        yield await client.start_workflow(
            TryInPairs.run,
            args=["c", given or terms()],
            id=f"pairs/c-{uuid.uuid4()}",
            task_queue=queue,
        )


async def card(handle: WorkflowHandle[Any, Any]) -> str:
    asked = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(asked.current_details)


def keeper(client: Client, task: ProveTask) -> WorkflowHandle[Any, Any]:
    node = task.node
    return client.get_workflow_handle(
        names.prove_workflow_id(node.cluster, node.name, node.machine)
    )


async def ends(client: Client, world: World) -> list[str]:
    tasks = [task for flock in world.flocks.flocks for task in flock.tasks]
    closings = [await keeper(client, each).result() for each in tasks]
    return [str(each["end"]) for each in closings]


async def test_the_odd_one_of_four_is_found_and_told_and_all_others_serve_again(server):
    world = World(bad={"b"}).of("a", "b", "c", "d")
    world.answers["prove"].append(FAULT)
    async with trying(server.client, world, runner=RUNNER) as handle:
        swept: Swept = await handle.result()
        assert swept.ends == {"found": 1, "proven": 3}
        assert await ends(server.client, world) == ["proven", "found", "proven", "proven"]
        said = await card(handle)
        await record(handle)
        (odd,) = (each for each in world.flocks.flocks[0].tasks if each.node.name[0] == "b")
        await record(keeper(server.client, odd), "keeper-of-the-odd-one")
    assert world.steps_of("b") == [*KEEPS, "prove", "prove-end found", *LETS_GO]
    assert world.steps_of("a") == [*KEEPS, "prove-end proven", *LETS_GO]
    (told,) = (asked for name, asked in world.asked if name == "prove")
    assert told.checks == (PAIRS,)
    assert told.word
    assert (told.word.fault, told.word.code) == ("nic-degraded", "pairs:hung")
    operations = [each.operation for each in world.pairs]
    assert len(set(operations)) == len(operations) > 3
    assert all(each.startswith(OPERATIONS) for each in operations)
    assert "pairs:hung" in said
    assert "**found** odd" in said


async def test_a_pair_that_fails_where_nobody_else_is_idle_blames_none_and_says_so(server):
    world = World(bad={"a"}).of("a", "b")
    async with trying(server.client, world) as handle:
        swept: Swept = await handle.result()
        said = await card(handle)
        await record(handle)
    assert swept.ends == {"unknown": 2}
    assert "nobody else: none can be blamed" in said
    for node in "ab":
        assert world.steps_of(node) == [*KEEPS, "prove-end unknown", *LETS_GO]


async def test_where_no_pair_comes_to_its_end_everybody_serves_again(server):
    world = World(untold=True).of("a", "b", "c")
    async with trying(server.client, world) as handle:
        swept: Swept = await handle.result()
    assert swept.ends == {"unknown": 3}
    assert len(world.pairs) == 3


async def test_who_gets_work_first_is_let_go_and_the_next_takes_its_place(server):
    world = World(bad={"a"}).of("a", "b", "c", "d", "e")
    world.answers["prove-taint"].append(WORK)
    async with trying(server.client, world) as handle:
        swept: Swept = await handle.result()
    stopped = [node for node in "abcde" if "prove-end stopped" in world.steps_of(node)]
    assert len(stopped) == 1
    assert swept.ends["stopped"] == 1
    assert sum(swept.ends.values()) == 5


async def test_what_the_budget_does_not_lend_is_not_taken_and_ends_the_run(server):
    world = World().of("a", "b", "c", "d", "e", "f", "g", "h")
    world.answers["prove-lease"].extend([DONE, FULL, FULL, FULL, FULL, FULL, FULL])
    async with trying(server.client, world) as handle:
        swept: Swept = await handle.result()
    assert swept.because == "no lease: frozen by ada: holidays"
    assert swept.ends["no-room"] >= 3
    assert world.pairs == []
    tainted = [asked.task.node.name for name, asked in world.asked if name == "prove-taint"]
    assert len(tainted) == 1


async def test_one_that_was_odd_needs_no_lease_and_serves_again_once_it_did_well(server):
    world = World().of("a", "b")
    (flock,) = world.flocks.flocks
    odd = a_task(Why.ODD, f"o-{uuid.uuid4()}")
    world.flocks = Flocks((Flock("pool/a", (odd, *flock.tasks), False),), 4, 1, 1)
    async with trying(server.client, world) as handle:
        swept: Swept = await handle.result()
    assert swept.ends == {"proven": 3}
    assert world.steps_of("o") == ["prove-end proven"]


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_trial_that_is_ended_early_gives_everything_back_in_order(server, how):
    world = World(waits=True).of("a", "b", "c")
    async with trying(server.client, world) as handle:
        await world.begun.wait()
        await getattr(handle, how)()
        assert await ends(server.client, world) == ["stopped"] * 3
        if how == "cancel":
            swept: Swept = await handle.result()
            assert swept == Swept({"stopped": 3}, "cancelled", 3)
            await record(handle, "trial-that-is-cancelled")
            assert world.paired == [], "the Pods of a pair end before its nodes serve again"
        else:
            described = await handle.describe()
            assert described.status is WorkflowExecutionStatus.TERMINATED
        world.waits = False
    for node in "abc":
        assert world.steps_of(node) == [*KEEPS, "prove-end stopped", *LETS_GO]


async def test_what_a_dead_trial_left_is_taken_off_by_the_run_that_the_watcher_asks_for(server):
    world, task = World(), a_task(Why.PAIRS)
    async with trying(server.client, world) as handle:
        await handle.result()
        queue = (await handle.describe()).task_queue
        closing = await server.client.execute_workflow(
            ProveNode.run,
            args=[task, terms()],
            id=keeper(server.client, task).id,
            task_queue=queue,
        )
    assert closing.end is ProofEnd.STOPPED
    assert [(name, asked.end) for name, asked in world.asked] == [("prove-end", ProofEnd.STOPPED)]


async def test_in_dry_run_and_without_a_word_in_the_policy_nothing_is_tried(server):
    world = World().of("a", "b", "c")
    dry = terms().model_copy(update={"dry_run": True})
    for given in (dry, terms("none")):
        async with trying(server.client, world, given) as handle:
            swept: Swept = await handle.result()
            assert swept.ends == {}
    assert world.asked == []
