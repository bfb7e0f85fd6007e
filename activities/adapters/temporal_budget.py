"""The disruption budget's workflow as processes see it: a batch is an update, a census a signal.

The first of either starts it. The update id is left to the client: batches are idempotent by
incident. Who sends is told when there is no Temporal, and sends again.
"""

from collections.abc import Callable
from datetime import timedelta

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy

from activities.adapters.temporal import RPC_TIMEOUT, translated
from activities.search_attributes import CLUSTER
from fleet import names
from fleet.census import Census
from fleet.errors import Ambiguous, Refused
from policies.exchange import Answer, Batch, SentAnswer, read_answer, send
from policies.ledger_archive import Archive

UPDATE_TIMEOUT = timedelta(seconds=20)


class TemporalBudget:
    """Sends batches to the budget of one cluster; and the `Budgets` port of the watcher.

    `client` raises `Transient` while there is none.
    """

    def __init__(self, client: Callable[[], Client], cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    async def exchange(self, batch: Batch) -> Answer:
        """Put a batch on record.

        Raises `Transient`, `Ambiguous` (send it again) or `Refused`.
        """
        start: WithStartWorkflowOperation[object, None] = WithStartWorkflowOperation(
            names.BUDGET_WORKFLOW,
            args=[Archive()],
            id=names.budget_workflow_id(self._cluster),
            task_queue=names.BUDGET_TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=self._summary,
            search_attributes=self._attributes,
        )
        update = self._client().execute_update_with_start_workflow(
            names.UPDATE_EXCHANGE,
            send(batch),
            start_workflow_operation=start,
            result_type=SentAnswer,
            rpc_timeout=UPDATE_TIMEOUT,
        )
        try:
            sent: SentAnswer = await translated(update)
        except WorkflowUpdateFailedError as failure:
            raise Refused(0, "budget-refused", str(failure.cause)) from failure
        except WorkflowUpdateRPCTimeoutOrCancelledError as problem:
            raise Ambiguous(f"the budget did not answer in {UPDATE_TIMEOUT}") from problem
        return read_answer(batch, sent)

    async def census(self, census: Census) -> None:
        """Signal with start: the census is there whether or not the budget has run before."""
        await translated(
            self._client().start_workflow(
                names.BUDGET_WORKFLOW,
                args=[Archive()],
                id=names.budget_workflow_id(self._cluster),
                task_queue=names.BUDGET_TASK_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=names.SIGNAL_CENSUS,
                start_signal_args=[census],
                static_summary=self._summary,
                search_attributes=self._attributes,
                rpc_timeout=RPC_TIMEOUT,
            )
        )

    @property
    def _summary(self) -> str:
        return f"disruption budget of {self._cluster}"

    @property
    def _attributes(self) -> TypedSearchAttributes:
        return TypedSearchAttributes([SearchAttributePair(CLUSTER, self._cluster)])
