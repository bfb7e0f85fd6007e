"""How a Temporal namespace stands: what `gpumend doctor` judges. Reads only."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    GetSystemInfoRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from activities.adapters.temporal import Absent, translated
from fleet import names
from fleet.errors import Transient

QUEUES = (names.TASK_QUEUE, names.BUDGET_TASK_QUEUE)
KINDS: Mapping[str, TaskQueueType.ValueType] = {
    "workflows": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    "activities": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
}
UNSAID = "by somebody who said no reason"
_STUCK = "TemporalReportedProblems IS NOT NULL AND ExecutionStatus = 'Running'"


@dataclass(frozen=True, slots=True)
class TemporalFacts:
    """One namespace.

    `retention` None: there is no such namespace, and nothing below it is known. `attributes` are
    the custom search attributes by name, as numbers of their types; `pollers` the queues' by
    `<queue> <kind>`; `stuck` is None where the server cannot say. `schedules` are those of proofs
    that are there, each with why it is paused, empty where it is on.
    """

    namespace: str
    version: str
    retention: timedelta | None = None
    attributes: Mapping[str, int] = field(default_factory=dict)
    pollers: Mapping[str, int] = field(default_factory=dict)
    budget: bool = False
    stuck: int | None = None
    schedules: Mapping[str, str] = field(default_factory=dict)


async def read_facts(client: Client, cluster: str) -> TemporalFacts:
    """Everything; raises `Transient` and `Refused`."""
    service, namespace = client.workflow_service, client.namespace
    system = await translated(service.get_system_info(GetSystemInfoRequest()))
    try:
        request = DescribeNamespaceRequest(namespace=namespace)
        described = await translated(service.describe_namespace(request))
    except (Absent, Transient):
        return TemporalFacts(namespace, system.server_version)
    wanted = ListSearchAttributesRequest(namespace=namespace)
    known = await translated(client.operator_service.list_search_attributes(wanted))
    return TemporalFacts(
        namespace=namespace,
        version=system.server_version,
        retention=described.config.workflow_execution_retention_ttl.ToTimedelta(),
        attributes=dict(known.custom_attributes),
        pollers={
            f"{queue} {kind}": await _pollers(client, queue, number)
            for queue in QUEUES
            for kind, number in KINDS.items()
        },
        budget=await _open(client, names.budget_workflow_id(cluster)),
        stuck=await _stuck(client),
        schedules=await _schedules(client, (names.sweep_id(cluster), names.pairs_id(cluster))),
    )


async def _pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> int:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    answer = await translated(client.workflow_service.describe_task_queue(request))
    return len(answer.pollers)


async def _open(client: Client, workflow_id: str) -> bool:
    try:
        found = await translated(client.get_workflow_handle(workflow_id).describe())
    except Absent:
        return False
    return found.status is not None and found.status.name == "RUNNING"


async def _schedules(client: Client, wanted: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in wanted:
        with suppress(Absent):
            described = await translated(client.get_schedule_handle(name).describe())
            state = described.schedule.state
            found[name] = (state.note or UNSAID) if state.paused else ""
    return found


async def _stuck(client: Client) -> int | None:
    """Runs whose workflow task fails over and over: a fault of the engine."""
    try:
        return (await client.count_workflows(_STUCK)).count
    except RPCError:
        return None
