"""Temporal as the watcher sees it: incidents to start, to tell, and to ask whether they are open.

The only place where a Temporal client's errors are translated. What the server could not take is
raised as `Transient`; the watcher sends it again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from activities.search_attributes import STEP, at_start
from fleet import names
from fleet.errors import Refused, Transient
from fleet.instant import format_instant
from fleet.opening import Opening
from fleet.report import Report
from fleet.step import Step
from policies.schema import Policy

T = TypeVar("T")

RPC_TIMEOUT = timedelta(seconds=10)
_REFUSALS = (
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNIMPLEMENTED,
)


_OPEN = f"WorkflowType = '{names.INCIDENT_WORKFLOW}' AND ExecutionStatus = 'Running'"


class TemporalIncidents:
    """The `Incidents` port, and that of `Grants`.

    `client` raises `Transient` while there is none; `policy` gives the document that a new incident
    takes along.
    """

    def __init__(self, client: Callable[[], Client], policy: Callable[[], Policy]) -> None:
        self._client = client
        self._policy = policy

    async def start(self, opening: Opening, report: Report) -> None:
        """Signal with start: one call, the same whether the incident is open or not."""
        fault = report.faults[0].name.value if report.faults else ""
        await translated(
            self._client().start_workflow(
                names.INCIDENT_WORKFLOW,
                args=[opening, self._policy(), None],
                id=opening.workflow_id,
                task_queue=names.TASK_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=names.SIGNAL_REPORT,
                start_signal_args=[report],
                search_attributes=at_start(opening, fault),
                memo=_memo(opening),
                static_summary=_headline(opening, fault),
                rpc_timeout=RPC_TIMEOUT,
            )
        )

    async def report(self, workflow_id: str, report: Report) -> bool:
        """Deliver a report; False if nothing is open under this id."""
        return await self._signal(workflow_id, names.SIGNAL_REPORT, report)

    async def node_gone(self, workflow_id: str, uid: str) -> bool:
        """Say that the Node object is gone."""
        return await self._signal(workflow_id, names.SIGNAL_NODE_GONE, uid)

    async def hold_removed(self, workflow_id: str, uid: str, mark_removed: bool) -> bool:
        """Say that our hold was taken away."""
        return await self._signal(workflow_id, names.SIGNAL_HOLD_REMOVED, uid, mark_removed)

    async def grant(self, workflow_id: str) -> bool:
        """Say that a lease may be fetched."""
        return await self._signal(workflow_id, names.SIGNAL_GRANT)

    async def is_open(self, workflow_id: str) -> bool:
        """Describe by id, which is consistent at once."""
        try:
            handle = self._client().get_workflow_handle(workflow_id)
            found = await translated(handle.describe(rpc_timeout=RPC_TIMEOUT))
        except Absent:
            return False
        return found.status is WorkflowExecutionStatus.RUNNING

    async def stage(self, workflow_id: str) -> str | None:
        """Describe by id; the stage is the search attribute `Step`, empty where there is none."""
        try:
            handle = self._client().get_workflow_handle(workflow_id)
            found = await translated(handle.describe(rpc_timeout=RPC_TIMEOUT))
        except Absent:
            return None
        if found.status is not WorkflowExecutionStatus.RUNNING:
            return None
        return found.typed_search_attributes.get(STEP, "")

    async def open_ids(self) -> frozenset[str]:
        """List, which lags behind."""
        return await self._ids(_OPEN)

    async def handed_off_ids(self) -> frozenset[str]:
        """List by the step that the runs show, which lags behind."""
        return await self._ids(f"{_OPEN} AND {STEP.name} = '{Step.HAND_OFF}'")

    async def _ids(self, query: str) -> frozenset[str]:
        runs = translated_each(self._client().list_workflows(query))
        return frozenset([each.id async for each in runs])

    async def _signal(self, workflow_id: str, signal: str, *arguments: object) -> bool:
        handle = self._client().get_workflow_handle(workflow_id)
        try:
            call = handle.signal(signal, args=list(arguments), rpc_timeout=RPC_TIMEOUT)
            await translated(call)
        except Absent:
            return False
        return True


def _headline(opening: Opening, fault: str) -> str:
    return f"{'DRY RUN ' if opening.dry else ''}{opening.node.name}: {fault or 'unknown'}"


def _memo(opening: Opening) -> dict[str, str]:
    """What a list shows of a run and of those that it goes on as, beside search attributes."""
    opened = format_instant(opening.mark.opened)
    return {"mark": opening.mark.id, "uid": opening.node.uid, "opened": opened}


class Absent(Exception):
    """There is no such run, or it is over."""


async def translated(call: Awaitable[T]) -> T:
    """Await a client's call, its errors in the words of `fleet.errors`."""
    try:
        return await call
    except RPCError as problem:
        raise _in_our_words(problem) from problem
    except RuntimeError as problem:  # the client's own: it could not connect
        raise Transient(f"Temporal: {problem}") from problem


async def translated_each(items: AsyncIterator[Any]) -> AsyncIterator[Any]:
    iterator = aiter(items)
    while True:
        try:
            yield await translated(anext(iterator))
        except StopAsyncIteration:
            return


def _in_our_words(problem: RPCError) -> Exception:
    if problem.status is RPCStatusCode.NOT_FOUND:
        return _no_namespace(problem) or Absent(problem.message)
    if problem.status in _REFUSALS:
        return Refused(int(problem.status), problem.status.name, problem.message)
    return Transient(f"Temporal: {problem.status.name} {problem.message}")


def _no_namespace(problem: RPCError) -> Transient | None:
    """A namespace that is not there says nothing about a run: nobody may take it for closed."""
    details = problem.grpc_status.details if problem.grpc_status else ()
    if not any(each.Is(NamespaceNotFoundFailure.DESCRIPTOR) for each in details):
        return None
    failure = NamespaceNotFoundFailure()
    next(each for each in details if each.Is(failure.DESCRIPTOR)).Unpack(failure)
    remedy = f"temporal operator namespace create --namespace {failure.namespace}"
    return Transient(f"Temporal has no namespace {failure.namespace}: {remedy}")
