"""Temporal as the watcher sees proofs: a run for a node, unless one runs already."""

from collections.abc import Callable

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy

from activities.adapters.temporal import RPC_TIMEOUT, translated
from activities.search_attributes import proof_attributes
from fleet import names
from fleet.proving import ProveTask
from policies.prove_terms import ProveTerms
from policies.schema import Policy


class TemporalProofs:
    """The `Proofs` port. `client` raises `Transient` while there is none."""

    def __init__(self, client: Callable[[], Client], policy: Callable[[], Policy]) -> None:
        self._client = client
        self._policy = policy

    async def prove(self, task: ProveTask) -> None:
        """Start by id: one that runs already is left alone."""
        node = task.node
        await translated(
            self._client().start_workflow(
                names.PROVE_WORKFLOW,
                args=[task, ProveTerms.of(self._policy())],
                id=names.prove_workflow_id(node.cluster, node.name, node.machine),
                task_queue=names.TASK_QUEUE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                search_attributes=proof_attributes(task),
                static_summary=f"{node.name}: unproven",
                rpc_timeout=RPC_TIMEOUT,
            )
        )
