"""The disruption budget's workflow as a process asks it: one batch, one update.

The first ask starts it. The update id is left to the client: batches are idempotent by incident.
"""

from datetime import timedelta

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy

from activities.adapters.temporal import translated
from fleet import names
from fleet.errors import Ambiguous, Refused
from policies.budget import Ledger
from policies.exchange import Answer, Batch

UPDATE_TIMEOUT = timedelta(seconds=20)


class TemporalBudget:
    """Sends batches to the budget of one cluster."""

    def __init__(self, client: Client, cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    async def exchange(self, batch: Batch) -> Answer:
        """Put a batch on record.

        Raises `Transient`, `Ambiguous` (send it again) or `Refused`.
        """
        start: WithStartWorkflowOperation[object, None] = WithStartWorkflowOperation(
            names.BUDGET_WORKFLOW,
            args=[Ledger()],
            id=names.budget_workflow_id(self._cluster),
            task_queue=names.BUDGET_TASK_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"disruption budget of {self._cluster}",
        )
        update = self._client.execute_update_with_start_workflow(
            names.UPDATE_EXCHANGE,
            batch,
            start_workflow_operation=start,
            result_type=Answer,
            rpc_timeout=UPDATE_TIMEOUT,
        )
        try:
            answer: Answer = await translated(update)
        except WorkflowUpdateFailedError as failure:
            raise Refused(0, "budget-refused", str(failure.cause)) from failure
        except WorkflowUpdateRPCTimeoutOrCancelledError as problem:
            raise Ambiguous(f"the budget did not answer in {UPDATE_TIMEOUT}") from problem
        return answer
