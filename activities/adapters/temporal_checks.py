"""What must be true of a Temporal namespace before a worker starts, and the command that mends it.

An unregistered search attribute wedges a running workflow; a retention that is too short forgets
attempts, and a machine would be rebooted a third time.
"""

from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from activities.adapters.temporal import translated
from activities.search_attributes import TYPES, register_command
from policies.durations import format_duration
from policies.schema import Policy


class NotReady(Exception):
    """The namespace does not fit; the message says what to do."""


async def check_search_attributes(client: Client) -> None:
    """Raise `NotReady` where one of ours is missing or of another type."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    answer = await translated(client.operator_service.list_search_attributes(request))
    known = dict(answer.custom_attributes)
    wrong = {name: kind for name, kind in TYPES.items() if known.get(name, kind) != kind}
    if wrong:
        said = ", ".join(f"{name} is {_kind(known[name])}" for name in wrong)
        raise NotReady(f"search attributes of another type in {client.namespace}: {said}")
    missing = {name: kind for name, kind in TYPES.items() if name not in known}
    if missing:
        command = f"{register_command(missing)} --namespace {client.namespace}"
        raise NotReady(f"search attributes are not registered ({', '.join(missing)}): {command}")


async def check_retention(client: Client, policy: Policy) -> None:
    """Raise `NotReady` where closed runs are forgotten sooner than the policy needs them."""
    request = DescribeNamespaceRequest(namespace=client.namespace)
    answer = await translated(client.workflow_service.describe_namespace(request))
    kept = answer.config.workflow_execution_retention_ttl.ToTimedelta()
    wanted = longest_window(policy)
    if kept < wanted:
        hours = -(-wanted // timedelta(hours=1))
        raise NotReady(
            f"namespace {client.namespace} keeps closed runs for {format_duration(kept)}, the"
            f" policy remembers attempts for {format_duration(wanted)}: temporal operator"
            f" namespace update --retention {hours}h --namespace {client.namespace}"
        )


def longest_window(policy: Policy) -> timedelta:
    """How far back any fault of the policy remembers attempts."""
    windows = (each.attempts.window for each in policy.faults.values() if each.steps)
    return max(windows, default=timedelta(0))


def _kind(number: int) -> str:
    return IndexedValueType.Name(number).removeprefix("INDEXED_VALUE_TYPE_")  # type: ignore[arg-type]
