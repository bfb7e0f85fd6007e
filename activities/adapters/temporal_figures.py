"""What Temporal knows of the fleet's trouble in numbers: open incidents by step, the ledger."""

from collections import Counter
from collections.abc import Callable

from temporalio.client import Client

from activities.adapters.temporal import RPC_TIMEOUT, Absent, translated, translated_each
from activities.clock import utc_now
from activities.search_attributes import CLUSTER, STEP
from fleet import names
from policies.ledger_view import LedgerView

MOST_INCIDENTS = 10_000
"""Open incidents that are counted; the list costs one call a thousand."""
PAGE = 1_000
UNKNOWN_STEP = "unknown"


class TemporalFigures:
    """Numbers of one cluster. Raises what the other adapters of Temporal raise."""

    def __init__(self, client: Callable[[], Client], cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    async def incidents(self) -> Counter[str]:
        """Open incidents by the step that they are at; the list lags by a second or two."""
        query = (
            f"WorkflowType = '{names.INCIDENT_WORKFLOW}' AND ExecutionStatus = 'Running'"
            f" AND {CLUSTER.name} = '{self._cluster}'"
        )
        found: Counter[str] = Counter()
        runs = self._client().list_workflows(query, page_size=PAGE, limit=MOST_INCIDENTS)
        async for each in translated_each(runs):
            found[each.typed_search_attributes.get(STEP, UNKNOWN_STEP)] += 1
        return found

    async def ledger(self) -> LedgerView | None:
        """The budget's own answer; None where it was never asked for anything."""
        handle = self._client().get_workflow_handle(names.budget_workflow_id(self._cluster))
        query = handle.query(
            names.QUERY_LEDGER, utc_now(), result_type=LedgerView, rpc_timeout=RPC_TIMEOUT
        )
        try:
            answer: LedgerView = await translated(query)
        except Absent:
            return None
        return answer
