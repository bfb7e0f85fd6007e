"""Incidents as a person asks for them: a list, one run's history, a query, an order.

The list comes from Temporal's visibility, which lags behind by a second or so and takes ten
requests a second on a self-hosted server; what is asked by id is the truth of the moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import FailureError
from temporalio.service import RPCStatusCode

from activities.adapters.temporal import Absent, translated, translated_each
from activities.adapters.temporal_history import Told, read_history
from fleet.closing import Closing
from fleet.errors import Ambiguous, NotFound, Refused
from fleet.instant import parse_instant

T = TypeVar("T")

ASK_TIMEOUT = timedelta(seconds=5)
"""For a query: a worker must take it up and replay the run."""
ORDER_TIMEOUT = timedelta(seconds=20)
MOST_CONTINUED = 50
"""Runs of one incident that are read back."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an incident as the list has it.

    `attributes` are its search attributes by name. `opened` is when its node was held, which
    outlives runs that go on as new ones; `mark` is the id of the mark that says so.
    """

    workflow_id: str
    run_id: str
    open: bool
    status: str
    started: datetime
    opened: datetime
    closed: datetime | None
    attributes: Mapping[str, Any]
    mark: str = ""


class TemporalReading:
    """Reads of one namespace. Raises `Transient`, `Refused`, and `NotFound` for no such run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def runs(self, query: str, most: int) -> tuple[Run, ...]:
        """The newest runs that a list filter finds."""
        found = translated_each(self._client.list_workflows(query, limit=most))
        return tuple([await self._run(each) async for each in found])

    async def count(self, query: str) -> int:
        """How many runs a list filter finds."""
        return (await translated(self._client.count_workflows(query))).count

    async def latest(self, workflow_id: str) -> Run:
        """The newest run of an id."""
        handle = self._client.get_workflow_handle(workflow_id)
        try:
            found = await translated(handle.describe(rpc_timeout=ASK_TIMEOUT))
        except Absent as problem:
            raise _not_found(workflow_id) from problem
        return await self._run(found)

    async def ask(self, workflow_id: str, query: str, kind: type[T], *arguments: object) -> T:
        """A query's answer; `Transient` where no worker answered in time."""
        handle = self._client.get_workflow_handle(workflow_id)
        call = handle.query(query, args=list(arguments), result_type=kind, rpc_timeout=ASK_TIMEOUT)
        try:
            answer: T = await translated(call)
        except Absent as problem:
            raise _not_found(workflow_id) from problem
        except WorkflowQueryFailedError as problem:
            raise Refused(0, "query-failed", str(problem)) from problem
        return answer

    async def order(self, workflow_id: str, update: str, argument: object) -> str:
        """Send an update; `Refused` carries the validator's no, `Ambiguous` an answer lost."""
        handle = self._client.get_workflow_handle(workflow_id)
        call = handle.execute_update(update, argument, result_type=str, rpc_timeout=ORDER_TIMEOUT)
        try:
            return await translated(call)
        except Absent as problem:
            raise _not_found(workflow_id) from problem
        except WorkflowUpdateFailedError as failure:
            cause = failure.cause
            why = cause.message if isinstance(cause, FailureError) else str(cause)
            raise Refused(0, "order-refused", why) from failure
        except WorkflowUpdateRPCTimeoutOrCancelledError as problem:
            words = f"no answer in {ORDER_TIMEOUT.seconds} s: does a worker run?"
            raise Ambiguous(words) from problem

    async def closing(self, run: Run) -> Closing | None:
        """The result of a run that ended by itself; None for any other."""
        handle = self._client.get_workflow_handle(
            run.workflow_id, run_id=run.run_id, result_type=Closing
        )
        try:
            found: Closing = await translated(
                handle.result(follow_runs=False, rpc_timeout=ASK_TIMEOUT)
            )
        except (WorkflowFailureError, Absent):
            return None
        return found

    async def history(self, run: Run) -> tuple[Told, ...]:
        """What the run and those that it goes on from say, oldest first."""
        told: tuple[Told, ...] = ()
        run_id = run.run_id
        for _ in range(MOST_CONTINUED):
            handle = self._client.get_workflow_handle(run.workflow_id, run_id=run_id)
            try:
                events = [each async for each in translated_each(handle.fetch_history_events())]
            except Absent:
                return told  # an earlier run that retention has taken
            told = (*await read_history(events, self._client.data_converter), *told)
            first = events[0].workflow_execution_started_event_attributes if events else None
            run_id = first.continued_execution_run_id if first else ""
            if not run_id:
                break
        return told

    async def _run(self, found: WorkflowExecution) -> Run:
        attributes = {each.key.name: each.value for each in found.typed_search_attributes}
        status = found.status or WorkflowExecutionStatus.RUNNING
        memo = await found.memo()
        return Run(
            workflow_id=found.id,
            run_id=found.run_id,
            open=status is WorkflowExecutionStatus.RUNNING,
            status=status.name.lower().replace("_", "-"),
            started=found.start_time,
            opened=parse_instant(memo["opened"]) if "opened" in memo else found.start_time,
            closed=found.close_time,
            attributes=attributes,
            mark=str(memo.get("mark", "")),
        )


def _not_found(workflow_id: str) -> NotFound:
    return NotFound(int(RPCStatusCode.NOT_FOUND), "no-such-run", f"Temporal has no {workflow_id}")
