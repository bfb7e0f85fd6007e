"""What closed incidents have tried, read from Temporal: the engine has no database of its own.

A run that ended by itself says it in its result. One that people ended from outside has none: then
its history says which repairs were asked for, and each counts, whether it happened or not.
"""

from datetime import UTC

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)

from activities.adapters.temporal import translated, translated_each
from fleet.closing import Closing
from fleet.errors import Refused
from fleet.outcome import PastAttempt
from fleet.request import StepRequest
from fleet.step import REPAIRS, Step

MOST_RUNS = 500
"""Closed runs of one machine that are read; more is a machine to look at."""


class TemporalMemory:
    """The `Memory` port."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def past_attempts(self, workflow_id: str) -> tuple[PastAttempt, ...]:
        """Repairs of every closed run that Temporal still keeps."""
        query = f"WorkflowId = '{workflow_id}' AND ExecutionStatus != 'Running'"
        past: list[PastAttempt] = []
        runs = 0
        async for run in translated_each(self._client.list_workflows(query, limit=MOST_RUNS)):
            runs += 1
            past += await self._attempts(run)
        if runs >= MOST_RUNS:
            raise Refused(0, "too-many", f"{workflow_id} has {runs} closed runs or more")
        return tuple(past)

    async def _attempts(self, run: WorkflowExecution) -> tuple[PastAttempt, ...]:
        handle: WorkflowHandle[object, Closing] = self._client.get_workflow_handle(
            run.id, run_id=run.run_id, result_type=Closing
        )
        if run.status is WorkflowExecutionStatus.CONTINUED_AS_NEW:
            return ()  # its attempts are with the incident that went on
        if run.status is not WorkflowExecutionStatus.COMPLETED:
            return await self._asked_for(run)
        try:
            closing = await translated(handle.result(follow_runs=False))
        except WorkflowFailureError as failure:
            raise Refused(0, "unreadable", f"run {run.run_id}: {failure.cause}") from failure
        return closing.repairs

    async def _asked_for(self, run: WorkflowExecution) -> tuple[PastAttempt, ...]:
        """What the histories of a run and of those that it went on from asked for."""
        found: list[PastAttempt] = []
        run_id = run.run_id
        for _ in range(MOST_RUNS):
            handle = self._client.get_workflow_handle(run.id, run_id=run_id)
            run_id = ""
            async for event in translated_each(handle.fetch_history_events()):
                started = event.workflow_execution_started_event_attributes
                run_id = run_id or started.continued_execution_run_id
                scheduled = event.activity_task_scheduled_event_attributes
                if scheduled.activity_type.name in REPAIRS:
                    found.append(await self._read(event))
            if not run_id:
                return tuple(found)
        raise Refused(0, "too-many", f"{run.id} went on {MOST_RUNS} times or more")

    async def _read(self, event: HistoryEvent) -> PastAttempt:
        scheduled = event.activity_task_scheduled_event_attributes
        arguments = await self._client.data_converter.decode(
            scheduled.input.payloads, [StepRequest]
        )
        request: StepRequest = arguments[0]
        at = event.event_time.ToDatetime(tzinfo=UTC)
        return PastAttempt(Step(scheduled.activity_type.name), at, request.parts)
