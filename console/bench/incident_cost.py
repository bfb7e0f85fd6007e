"""What one incident costs on a Temporal server: history events, and actions as they are billed.

The workflow, its timers and attributes are the real ones, on a dev server; its steps are stand-ins
that end at once, so no heartbeat and no retry is in the figures. A machine whose fault a reset does
not heal and a reboot does: held, drained, reset, rebooted, verified, released, closed.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.decide import decide
from activities.search_attributes import at_start
from console.bench.budget_storm import LIMIT, dev_server
from console.bench.decide_speed import FAULT, NODE
from fleet import names
from fleet.fault import Fault
from fleet.finding import Finding, Verdict
from fleet.mark import Mark, MarkState
from fleet.opening import Opening
from fleet.outcome import Outcome, OutcomeKind
from fleet.report import Report
from fleet.request import StepRequest
from fleet.step import Means, Step
from policies.document import load
from policies.lease_terms import LeaseTerms
from workflows.node_remediation import NodeRemediation
from workflows.sandbox import RUNNER

POLICY = load(
    """
limits: {unknown_wait: 5s, look_again: 60s}
faults:
  uncontained-memory: {tolerate: 0s, steps: [reset-gpu, reboot], probation: 1s}
""",
    "bench",
)
LENT = (Step.LEASE, Step.GIVE_BACK)
PLAIN = (
    *(Step.HOLD, Step.RECALL, Step.VERIFY, Step.DRAIN, Step.RESET_GPU, Step.REBOOT),
    *(Step.RELEASE, Step.CLOSE),
)
BILLED = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        EventType.EVENT_TYPE_TIMER_STARTED,
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    }
)
"""One action each. The start and the signal that comes with it are one together."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a whole incident was. `steps` are those that were performed, in order."""

    events: int
    actions: int
    steps: tuple[str, ...]


class Node:
    """The node as its steps find it and as the watcher tells it."""

    def __init__(self) -> None:
        self.boot = "b1"
        self.faults: tuple[Fault, ...] = (FAULT,)
        self.steps: list[str] = []
        self.told: WorkflowHandle[Any, Any] | None = None

    def report(self) -> Report:
        """All that is wrong with it now."""
        return Report(NODE, self.boot, self.faults, (), datetime.now(UTC))

    async def perform(self, request: StepRequest) -> Outcome:
        """End a step at once."""
        self.steps.append(request.step.value)
        if request.step is Step.REBOOT:
            self.boot, self.faults = "b2", ()
            if self.told:
                await self.told.signal(names.SIGNAL_REPORT, self.report())
        if request.step is Step.VERIFY and self.faults:
            seen = Finding("memory", FAULT.part, Verdict.FAULT, FAULT.name, FAULT.code)
            return Outcome(OutcomeKind.PERMANENT, boot_id=self.boot, findings=(seen,))
        means, back = (Means.INSIDE,), request.lent
        return Outcome(OutcomeKind.SUCCEEDED, boot_id=self.boot, means=means, gave_back=back)

    def activities(self) -> Sequence[Callable[..., Any]]:
        """Each step under its name."""
        return [self._plain(each) for each in PLAIN]

    def lending(self) -> Sequence[Callable[..., Any]]:
        """The two that ask the budget."""
        return [self._lent(each) for each in LENT]

    def _plain(self, step: Step) -> Callable[..., Any]:
        @activity.defn(name=step.value)
        async def run(request: StepRequest) -> Outcome:
            return await self.perform(request)

        return run

    def _lent(self, step: Step) -> Callable[..., Any]:
        @activity.defn(name=step.value)
        async def run(request: StepRequest, _: LeaseTerms) -> Outcome:
            return await self.perform(request)

        return run


async def measure() -> Cost:
    """Run one incident to its end and count."""
    node = Node()
    async with dev_server() as (client, _), asyncio.timeout(LIMIT):
        history = await _history(client, node)
    return Cost(len(history), actions(history), tuple(node.steps))


async def _history(client: Client, node: Node) -> Sequence[HistoryEvent]:
    now = datetime.now(UTC)
    mark = Mark("0a1b2c3d-20261129120000", NODE.machine, NODE.uid, MarkState.PENDING, now)
    opening = Opening(NODE, replace(mark, opened=now), {})
    worker = Worker(
        client,
        task_queue=names.TASK_QUEUE,
        workflows=[NodeRemediation],
        activities=[*node.activities(), decide],
        workflow_runner=RUNNER,
    )
    queue = f"{names.TASK_QUEUE}{names.BUDGET_SUFFIX}"
    async with worker, Worker(client, task_queue=queue, activities=node.lending()):
        handle = await client.start_workflow(
            NodeRemediation.run,
            args=[opening, POLICY, None],
            id=opening.workflow_id,
            task_queue=names.TASK_QUEUE,
            start_signal=names.SIGNAL_REPORT,
            start_signal_args=[node.report()],
            search_attributes=at_start(opening, FAULT.name),
        )
        node.told = handle
        await handle.result()
        return (await handle.fetch_history()).events


def actions(history: Iterable[HistoryEvent]) -> int:
    """Actions by the cloud's price list; the local activities of one workflow task are one."""
    count, last = 0, None
    for event in history:
        kind = event.event_type
        local = event.marker_recorded_event_attributes.workflow_task_completed_event_id
        count += kind in BILLED or bool(local and local != last)
        last = local or last
        if kind == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            count += event.activity_task_started_event_attributes.attempt
    return count
