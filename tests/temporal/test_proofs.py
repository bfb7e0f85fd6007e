"""Proofs and sweeps on a real server: their steps are scripted, their time is real or skipped."""

import asyncio
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, ScheduleOverlapPolicy, WorkflowExecutionStatus
from temporalio.testing import TimeSkipper, TimeSkippingConfig
from temporalio.worker import Worker

from activities.adapters.temporal_proofs import TemporalProofs
from activities.adapters.temporal_sweeps import NOTHING, schedule_sweeps
from activities.search_attributes import NODE, proof_attributes
from fleet import names
from fleet.node import NodeIdentity
from fleet.outcome import Outcome, OutcomeKind
from fleet.proof import Why
from fleet.proving import ProofEnd, ProveRequest, ProveTask
from fleet.reason import FAULT_STANDS, QUEUED
from policies.document import load
from policies.lease_terms import LeaseTerms
from policies.prove_terms import ProveTerms
from policies.proving import Candidates
from policies.proving_terms import Sweep
from policies.schema import Policy
from tests.proving.nodes import OK, SICK, UNKNOWN
from tests.temporal.running import LONGEST, record
from workflows.prove import ProveNode
from workflows.sandbox import RUNNER
from workflows.sweep import MOST_FOUND, Course, SweepNodes

pytestmark = pytest.mark.asyncio(loop_scope="session")
KIND = OutcomeKind
DONE = Outcome(KIND.SUCCEEDED)
PASSED, WELL_LATER = Outcome(KIND.SUCCEEDED, findings=(OK,)), Outcome(KIND.TRANSIENT, "not-ready")
FAULT = Outcome(KIND.PERMANENT, "fault-found", "a check saw a fault", findings=(SICK,))
UNTOLD = Outcome(KIND.TRANSIENT, "unverified", "compute: no backend", findings=(UNKNOWN,))
WORK = Outcome(KIND.CANCELLED, "in-use", "1 Pods may use its GPUs: default/job")
FULL = Outcome(KIND.TRANSIENT, QUEUED, "frozen by ada: holidays")


def policy(text: str = "sweep: {every: 2h, look: 1h}") -> Policy:
    return load(f"faults: {{}}\nproving: {{pause: 1s, tries: 2, {text}}}", "p")


@dataclass
class Script:
    """What each step answers, in turn; without a script it is done. `asked` is what was asked."""

    answers: dict[str, deque[Outcome]] = field(default_factory=lambda: defaultdict(deque))
    asked: list[tuple[str, ProveRequest]] = field(default_factory=list)
    found: Candidates = field(default_factory=lambda: Candidates((), 1, 0, 0))
    busy: int = 0
    most_busy: int = 0

    def steps(self, *names_: str) -> Sequence[Callable[..., Any]]:
        return [self._step(each) for each in names_]

    def names(self) -> list[str]:
        return [
            f"{name} {asked.end}" if name == "prove-end" else name for name, asked in self.asked
        ]

    def _step(self, name: str) -> Callable[..., Any]:
        @activity.defn(name=name)
        async def run(request: ProveRequest) -> Outcome:
            return await self.answer(name, request)

        return run

    @activity.defn(name="prove-lease")
    async def lease(self, request: ProveRequest, terms: LeaseTerms) -> Outcome:
        assert terms.budgets
        return await self.answer("prove-lease", request)

    async def answer(self, name: str, request: ProveRequest) -> Outcome:
        self.asked.append((name, request))
        self.busy += name == "prove"
        self.most_busy = max(self.most_busy, self.busy)
        await asyncio.sleep(0)
        self.busy -= name == "prove"
        if self.answers[name]:
            return self.answers[name].popleft()
        return PASSED if name == "prove" else DONE

    @activity.defn(name="sweep-candidates")
    async def candidates(self, cluster: str, sweep: Sweep) -> Candidates:
        assert cluster
        assert sweep
        return self.found


@asynccontextmanager
async def working(
    client: Client, script: Script, queue: str, limit: float = LONGEST
) -> AsyncIterator[None]:
    steps = script.steps("prove-taint", "prove", "prove-end")
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[ProveNode, SweepNodes],
        activities=[*steps, script.candidates],
        workflow_runner=RUNNER,
    )
    lending = [script.lease, *script.steps("prove-give-back")]
    lender = Worker(client, task_queue=f"{queue}{names.BUDGET_SUFFIX}", activities=lending)
    async with worker, lender, asyncio.timeout(limit):
        yield


def a_task(why: Why = Why.JOINED, name: str = "") -> ProveTask:
    return ProveTask(NodeIdentity("c", name or f"n-{uuid.uuid4()}", "u1", "m1"), "b1", why)


BRANCHES: dict[str, tuple[Why, dict[str, list[Outcome]], ProofEnd, list[str]]] = {
    "a-new-node-that-passes": (
        Why.JOINED, {}, ProofEnd.PROVEN, ["prove", "prove-end proven"],
    ),
    "a-new-node-with-a-fault": (
        Why.JOINED, {"prove": [FAULT]}, ProofEnd.FOUND, ["prove", "prove-end found"],
    ),
    "could-not-tell-then-it-could": (
        Why.JOINED, {"prove": [UNTOLD]}, ProofEnd.PROVEN, ["prove", "prove", "prove-end proven"],
    ),
    "could-never-tell": (
        Why.JOINED, {"prove": [UNTOLD, UNTOLD]}, ProofEnd.UNKNOWN,
        ["prove", "prove", "prove-end unknown"],
    ),
    "passed-and-the-agent-is-not-there-yet": (
        Why.JOINED, {"prove-end": [WELL_LATER]}, ProofEnd.PROVEN,
        ["prove", "prove-end proven", "prove", "prove-end proven"],
    ),
    "passed-and-the-agent-says-it-is-sick": (
        Why.SWEEP, {"prove-end": [Outcome(KIND.CANCELLED, FAULT_STANDS)]}, ProofEnd.FOUND,
        ["prove-lease", "prove-taint", "prove", "prove-end proven", "prove-end found",
         "prove-give-back"],
    ),
    "an-idle-node-that-passes": (
        Why.SWEEP, {}, ProofEnd.PROVEN,
        ["prove-lease", "prove-taint", "prove", "prove-end proven", "prove-give-back"],
    ),
    "an-idle-node-with-a-fault": (
        Why.SWEEP, {"prove": [FAULT]}, ProofEnd.FOUND,
        ["prove-lease", "prove-taint", "prove", "prove-end found", "prove-give-back"],
    ),
    "no-lease": (
        Why.SWEEP, {"prove-lease": [FULL]}, ProofEnd.NO_ROOM,
        ["prove-lease", "prove-end no-room", "prove-give-back"],
    ),
    "work-came-before-the-taint-was-seen": (
        Why.SWEEP, {"prove-taint": [WORK]}, ProofEnd.STOPPED,
        ["prove-lease", "prove-taint", "prove-end stopped", "prove-give-back"],
    ),
    "work-came-before-the-checks": (
        Why.SWEEP, {"prove": [WORK]}, ProofEnd.STOPPED,
        ["prove-lease", "prove-taint", "prove", "prove-end stopped", "prove-give-back"],
    ),
    "an-idle-node-of-which-nobody-can-tell": (
        Why.SWEEP, {"prove": [UNTOLD, UNTOLD]}, ProofEnd.UNKNOWN,
        ["prove-lease", "prove-taint", "prove", "prove", "prove-end unknown", "prove-give-back"],
    ),
}  # fmt: skip


RECORDED = (
    "could-not-tell-then-it-could",
    "an-idle-node-with-a-fault",
    "no-lease",
    "work-came-before-the-taint-was-seen",
)


class Stage:
    """Many scripts behind one worker, by the node."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}

    async def answer(self, name: str, request: ProveRequest) -> Outcome:
        return await self.scripts[request.task.node.name].answer(name, request)


async def play(client: Client, queue: str, stage: Stage, branch: str) -> None:
    """One branch, from its start to what must be true at its end."""
    why, answers, end, steps = BRANCHES[branch]
    task = a_task(why)
    script = stage.scripts[task.node.name] = Script()
    for name, outcomes in answers.items():
        script.answers[name].extend(outcomes)
    handle = await client.start_workflow(
        ProveNode.run,
        args=[task, ProveTerms.of(policy())],
        id=names.prove_workflow_id("c", task.node.name, "m1"),
        task_queue=queue,
        search_attributes=proof_attributes(task),
    )
    closing = await handle.result()
    asked = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert (closing.end, script.names()) == (end, steps), branch
    operations = [each.operation for _, each in script.asked]
    assert len(set(operations)) == len(operations)
    assert task.node.name in asked.current_details
    assert f"end: **{end.value}**" in asked.current_details
    if branch in RECORDED:
        await record(handle, f"proof-{branch}")


async def test_a_proof_takes_each_way_to_its_end(server):
    queue, stage, front = f"q-{uuid.uuid4()}", Stage(), Script()
    front.answer = stage.answer  # type: ignore[method-assign]
    async with working(server.client, front, queue, limit=3 * LONGEST):
        await asyncio.gather(*(play(server.client, queue, stage, each) for each in BRANCHES))


async def test_in_dry_run_what_a_sweep_left_is_taken_off_and_nothing_is_run(server):
    queue, script, task = f"q-{uuid.uuid4()}", Script(), a_task(Why.SWEEP)
    terms = ProveTerms.of(load("faults: {}\ndry_run: yes\n", "p"))
    async with working(server.client, script, queue):
        closing = await server.client.execute_workflow(
            ProveNode.run,
            args=[task, terms],
            id=names.prove_workflow_id("c", task.node.name, "m1"),
            task_queue=queue,
        )
    assert (closing.end, script.names()) == (ProofEnd.STOPPED, ["prove-end stopped"])


async def test_a_sweep_that_a_person_cancels_takes_its_taint_off_and_pays_back(server):
    checked = asyncio.Event()

    class Telling(Script):
        async def answer(self, name: str, request: ProveRequest) -> Outcome:
            outcome = await super().answer(name, request)
            if name == "prove":
                checked.set()
            return outcome

    queue, script, task = f"q-{uuid.uuid4()}", Telling(), a_task(Why.SWEEP)
    script.answers["prove"].extend([UNTOLD, UNTOLD])
    patient = load("faults: {}\nproving: {pause: 1h, tries: 2}", "p")
    async with working(server.client, script, queue):
        handle = await server.client.start_workflow(
            ProveNode.run,
            args=[task, ProveTerms.of(patient)],
            id=names.prove_workflow_id("c", task.node.name, "m1"),
            task_queue=queue,
        )
        await checked.wait()
        await handle.cancel()
        closing = await handle.result()
    assert closing.end is ProofEnd.STOPPED
    ends = ["prove-end stopped", "prove-give-back"]
    assert script.names() == ["prove-lease", "prove-taint", "prove", *ends]


async def test_a_proof_whose_worker_dies_between_taint_and_checks_goes_on_with_another(server):
    queue, script, task = f"q-{uuid.uuid4()}", Script(), a_task(Why.SWEEP)
    tainted = asyncio.Event()

    @activity.defn(name="prove-taint")
    async def taint(request: ProveRequest) -> Outcome:
        tainted.set()
        return DONE

    dying = Worker(
        server.client,
        task_queue=queue,
        workflows=[ProveNode],
        activities=[taint],
        workflow_runner=RUNNER,
    )
    lending = [script.lease, *script.steps("prove-give-back")]
    lender = Worker(server.client, task_queue=f"{queue}{names.BUDGET_SUFFIX}", activities=lending)
    async with lender, asyncio.timeout(LONGEST), dying:
        handle = await server.client.start_workflow(
            ProveNode.run,
            args=[task, ProveTerms.of(policy())],
            id=names.prove_workflow_id("c", task.node.name, "m1"),
            task_queue=queue,
        )
        await tainted.wait()
    async with working(server.client, script, queue):
        closing = await handle.result()
    assert closing.end is ProofEnd.PROVEN
    assert script.names()[-3:] == ["prove", "prove-end proven", "prove-give-back"]


async def test_who_asks_again_finds_the_proof_that_runs(server):
    proofs, task = TemporalProofs(lambda: server.client, policy), a_task()
    await proofs.prove(task)
    handle = server.client.get_workflow_handle(
        names.prove_workflow_id("c", task.node.name, task.node.machine)
    )
    first = await handle.describe()
    await proofs.prove(task)
    described = await handle.describe()
    assert described.run_id == first.run_id
    assert described.status is WorkflowExecutionStatus.RUNNING
    assert described.typed_search_attributes[NODE] == task.node.name
    await handle.terminate()


async def sweep(client: Client, script: Script, tasks: Sequence[ProveTask], room: int = 1):
    script.found = Candidates(tuple(tasks), room, len(tasks), len(tasks))
    queue, terms = f"q-{uuid.uuid4()}", ProveTerms.of(policy())
    async with working(client, script, queue):
        handle = await client.start_workflow(
            SweepNodes.run, args=["c", terms], id=f"sweep/c-{uuid.uuid4()}", task_queue=queue
        )
        swept = await handle.result()
        if room:
            await record(handle)
    return swept


def swept_tasks(count: int) -> list[ProveTask]:
    return [a_task(Why.SWEEP) for _ in range(count)]


async def test_a_sweep_proves_every_candidate_a_few_at_a_time(server):
    script, both = Script(), asyncio.Barrier(2)
    answer = script.answer

    async def two_at_once(name: str, request: ProveRequest) -> Outcome:
        if name == "prove":
            await both.wait()
        return await answer(name, request)

    script.answer = two_at_once  # type: ignore[method-assign]
    swept = await sweep(server.client, script, swept_tasks(4), room=2)
    assert (swept.ends, swept.because, swept.due) == ({"proven": 4}, "nothing is left", 4)
    assert script.most_busy <= 2


async def test_a_sweep_stops_politely_when_the_budget_lends_nothing(server):
    script = Script()
    script.answers["prove-lease"].extend([DONE, FULL])
    swept = await sweep(server.client, script, swept_tasks(5))
    assert swept.ends == {"no-room": 1, "proven": 1}
    assert swept.because == "no lease: frozen by ada: holidays"


async def test_a_sweep_that_finds_too_much_doubts_the_check_and_stops(server):
    script = Script()
    script.answers["prove"].extend([FAULT] * 9)
    swept = await sweep(server.client, script, swept_tasks(6))
    assert swept.ends == {"found": MOST_FOUND}
    assert "look at the check" in swept.because


async def test_without_room_a_sweep_begins_nothing(server):
    script = Script()
    swept = await sweep(server.client, script, swept_tasks(3), room=0)
    assert (swept.ends, script.asked) == ({}, [])


async def test_hours_between_two_tries_are_waited_by_a_timer(server):
    skipper = TimeSkipper(server.client, config=TimeSkippingConfig(enabled=False))
    script, queue, task = Script(), f"q-{uuid.uuid4()}", a_task()
    script.answers["prove"].append(UNTOLD)
    slow = load("faults: {}\nproving: {pause: 6h}", "p")
    async with working(skipper.client, script, queue):
        handle = await skipper.client.start_workflow(
            ProveNode.run,
            args=[task, ProveTerms.of(slow)],
            id=names.prove_workflow_id("c", task.node.name, "m1"),
            task_queue=queue,
        )
        await skipper.fast_forward(handle, timedelta(hours=6, minutes=1))
        closing = await handle.result()
    assert closing.end is ProofEnd.PROVEN
    (first, second) = [asked for name, asked in script.asked if name == "prove"]
    assert second.since - first.since >= timedelta(hours=6)


async def test_a_sweep_whose_time_is_over_begins_no_more():
    until = datetime(2026, 11, 29, 13, 0, tzinfo=UTC)
    course = Course(until, deque(swept_tasks(3)))
    assert course.next(until - timedelta(seconds=1))
    assert course.next(until) is None
    assert (course.because, len(course.left)) == ("its time is over", 2)


async def described(client: Client, cluster: str):
    return await client.get_schedule_handle(names.sweep_id(cluster)).describe()


async def test_the_schedule_is_made_once_and_follows_the_policy(server):
    cluster, client = f"c-{uuid.uuid4()}", server.client
    await schedule_sweeps(client, cluster, policy())
    made = (await described(client, cluster)).schedule
    assert made.spec.intervals[0].every == timedelta(hours=1)
    assert made.policy.overlap is ScheduleOverlapPolicy.SKIP
    assert not made.state.paused
    await schedule_sweeps(client, cluster, policy("sweep: {every: 9h, look: 3h}"))
    assert (await described(client, cluster)).schedule.spec.intervals[0].every.seconds == 10_800
    for nothing in (policy("sweep: none"), policy().model_copy(update={"dry_run": True})):
        await schedule_sweeps(client, cluster, nothing)
        state = (await described(client, cluster)).schedule.state
        assert (state.paused, state.note) == (True, NOTHING)
    await schedule_sweeps(client, cluster, policy())
    assert not (await described(client, cluster)).schedule.state.paused
    handle = client.get_schedule_handle(names.sweep_id(cluster))
    await handle.pause(note="ada: not this week")
    await schedule_sweeps(client, cluster, policy())
    state = (await described(client, cluster)).schedule.state
    assert (state.paused, state.note) == (True, "ada: not this week")
    await handle.delete()


async def test_the_schedule_starts_a_sweep_by_name_with_what_it_needs(server):
    cluster, script = f"c-{uuid.uuid4()}", Script()
    await schedule_sweeps(server.client, cluster, policy())
    handle = server.client.get_schedule_handle(names.sweep_id(cluster))
    async with working(server.client, script, names.TASK_QUEUE):
        await handle.trigger()
        while not (actions := (await handle.describe()).info.recent_actions):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        run = server.client.get_workflow_handle(actions[0].action.workflow_id)
        swept = await run.result()
    await handle.delete()
    assert run.id.startswith(f"sweep/{cluster}")
    assert swept["because"] == "nothing is left"
