"""Run a step on a node as a Pod bound to it, once for an operation, and read what it reports.

The name is the operation's, so asking again finds the Pod instead of making another. A Pod that
never starts is taken away before anybody draws conclusions; one whose end nobody saw is unknown.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from temporalio import activity

from activities.clock import Clock
from activities.node_pods import bound_to
from activities.pod_manifest import (
    MARGIN_SECONDS,
    has_ended,
    has_started,
    pod_name,
    step_pod,
    termination_message,
    why_waiting,
)
from activities.pods import OPERATION_LABEL
from activities.waiting import Listing, list_all, wait_until
from fleet.errors import Ambiguous, Conflict, NotFound, Refused, Transient
from fleet.names import NAMESPACE
from fleet.ports import Json, Kubernetes
from fleet.step import NodeStepReport, NodeStepRequest, parse_report

_log = logging.getLogger(__name__)

STEP_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

START_LIMIT = timedelta(minutes=3)
"""A kubelet that lives starts a Pod in seconds; the rest is for pulling the image."""

CREATE_TRIES = 3
"""Asks whose answers may be lost, before the API server counts as away."""

KEPT_PODS = 4
"""Finished Pods left on a node for their logs; older ones are deleted."""

DELETED_AT_ONCE = 20
"""Old Pods deleted in one go, so that tidying never becomes the step."""


class Trouble(StrEnum):
    """Why there is no report."""

    NEVER_STARTED = "never-started"
    LOST = "lost"
    UNREADABLE = "unreadable"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class NoReport:
    """NEVER_STARTED: it did nothing and will do nothing. Anything else: it may have acted."""

    trouble: Trouble
    detail: str


class PinnedPods:
    """Steps on nodes, by Pods in our namespace."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        image: str,
        now: Clock,
        *,
        start_limit: timedelta = START_LIMIT,
    ) -> None:
        self._kubernetes = kubernetes
        self._image = image
        self._now = now
        self._start_limit = start_limit

    async def begun(self, operation: str) -> bool:
        """Whether an earlier try of this activity made the Pod; a first try has no earlier one."""
        return activity.info().attempt > 1 and await self._read(operation) is not None

    async def run(
        self, request: NodeStepRequest, node: str, *, asked: Callable[[], None] = lambda: None
    ) -> NodeStepReport | NoReport:
        """Carry out the step, or find it carried out; `asked` is called when the Pod exists.

        Returns by `not_after` and a margin. Raises the port's errors.
        """
        pod = await self._create(request, node)
        asked()
        last = request.not_after + timedelta(seconds=2 * MARGIN_SECONDS)
        ended = await self._end(request.operation, min(self._now() + self._start_limit, last), pod)
        if ended is None:
            left = await self._take_away(request.operation)
            if isinstance(left, NoReport):
                return left
            ended = await self._end(request.operation, last, left)
        return _read_end(ended, request, node)

    async def stop(self, node: str, beginning: str) -> None:
        """End what still runs on a node for operations that begin so; raise Transient until it has.

        A kubelet gives a Pod its time to end, and what it uses is in use until then.
        """
        pods = await step_pods(self._kubernetes, node)
        ours = [each for each in pods if not has_ended(each) and _operation(each, beginning)]
        for pod in ours:
            metadata = pod["metadata"]
            with suppress(NotFound, Conflict):  # gone, or another by that name
                path = f"{STEP_PODS}/{metadata['name']}"
                await self._kubernetes.delete(path, uid=metadata["uid"])
        if ours:
            raise Transient(f"{', '.join(each['metadata']['name'] for each in ours)} still ends")

    async def _create(self, request: NodeStepRequest, node: str) -> Json | None:
        """The Pod as it was made; None where it is there already."""
        body = step_pod(request, node, self._image, self._now(), os.environ)
        for _ in range(CREATE_TRIES):
            try:
                return await self._kubernetes.create(STEP_PODS, body)
            except Conflict:
                return None  # ours, by its name
            except Ambiguous as problem:
                lost = problem
        raise Transient(f"{pod_name(request.operation)}: {lost}")

    async def _end(self, operation: str, until: datetime, pod: Json | None) -> Json | None:
        """The Pod once it has ended; `{}` once it is gone; None when time is up.

        `pod` is how it was just seen.
        """

        def look(pods: Sequence[Json]) -> Json | None:
            if not pods:
                return {}
            return pods[0] if has_ended(pods[0]) else None

        return await wait_until(
            self._kubernetes,
            STEP_PODS,
            {"fieldSelector": f"metadata.name={pod_name(operation)}"},
            look,
            until=until,
            now=self._now,
            start=Listing.of_one(pod) if pod else None,
        )

    async def _take_away(self, operation: str) -> Json | NoReport:
        """Delete a Pod that has not started, then look: it may have started meanwhile."""
        pod = await self._read(operation)
        if pod is None:
            return NoReport(Trouble.LOST, "its Pod was deleted")
        if has_started(pod):
            return pod
        try:
            await self._kubernetes.delete(_path(operation), uid=pod["metadata"]["uid"])
        except (NotFound, Conflict):
            return NoReport(Trouble.LOST, "its Pod was deleted by somebody else")
        left = await self._read(operation)
        if left is not None and has_started(left):
            return left
        return NoReport(Trouble.NEVER_STARTED, f"its Pod never started: {why_waiting(pod)}")

    async def _read(self, operation: str) -> Json | None:
        try:
            return await self._kubernetes.get(_path(operation))
        except NotFound:
            return None


async def step_pods(kubernetes: Kubernetes, node: str) -> tuple[Json, ...]:
    """The Pods of steps of ours on this node."""
    query = {**bound_to(node), "labelSelector": OPERATION_LABEL}
    return (await list_all(kubernetes, STEP_PODS, query)).objects


def unfinished(pods: Sequence[Json]) -> tuple[str, ...]:
    """Names of those that may still run."""
    return tuple(each["metadata"]["name"] for each in pods if not has_ended(each))


async def tidy(kubernetes: Kubernetes, pods: Sequence[Json]) -> None:
    """Delete what has ended but for the last few, whose logs people may want to read."""
    finished = sorted((each for each in pods if has_ended(each)), key=_age, reverse=True)
    try:
        for pod in finished[KEPT_PODS : KEPT_PODS + DELETED_AT_ONCE]:
            metadata = pod["metadata"]
            await kubernetes.delete(f"{STEP_PODS}/{metadata['name']}", uid=metadata["uid"])
    except (Refused, Transient, Ambiguous) as problem:
        # Old Pods cost little; a step that did not happen because of them would cost much.
        _log.warning("event=step-pods-not-tidied problem=%r", str(problem))


def _read_end(pod: Json | None, request: NodeStepRequest, node: str) -> NodeStepReport | NoReport:
    if pod is None:
        return NoReport(Trouble.LOST, "nobody said how its Pod ended, and its time is over")
    if not pod:
        return NoReport(Trouble.LOST, "its Pod was deleted before it reported")
    labels = pod["metadata"].get("labels") or {}
    bound = (pod.get("spec") or {}).get("nodeName")
    if labels.get(OPERATION_LABEL) != request.operation or bound != node:
        return NoReport(Trouble.FOREIGN, f"the Pod of that name is another's, on {bound}")
    try:
        report = parse_report(termination_message(pod))
    except ValueError as problem:
        return NoReport(Trouble.UNREADABLE, str(problem))
    if report.operation != request.operation or report.step is not request.step:
        return NoReport(Trouble.UNREADABLE, f"it reports {report.step} of {report.operation}")
    return report


def _operation(pod: Json, beginning: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get(OPERATION_LABEL, "")).startswith(beginning)


def _path(operation: str) -> str:
    return f"{STEP_PODS}/{pod_name(operation)}"


def _age(pod: Json) -> str:
    return str(pod["metadata"].get("creationTimestamp", ""))
