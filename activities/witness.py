"""Stands beside every step: says its end as an Event, after it and before its answer, and counts.

An interceptor, so that no step knows of it and no action of Temporal's is spent on it. A worker
that dies in between repeats the step, which looks first, and the Event, which has the same name.
"""

import time
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.event_writer import EventWriter
from activities.node_event import NodeEvent
from activities.proof_events import event_of_proof
from activities.step_events import event_of_step
from activities.step_figures import StepFigures
from fleet.outcome import Outcome
from fleet.proving import ProveRequest
from fleet.request import StepRequest


class Witness(Interceptor):
    """For the workers that perform steps."""

    def __init__(self, events: EventWriter, figures: StepFigures | None = None) -> None:
        self._events = events
        self._figures = figures

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """Beside each activity."""
        return _Beside(next, self._events, self._figures)


class _Beside(ActivityInboundInterceptor):
    def __init__(
        self,
        following: ActivityInboundInterceptor,
        events: EventWriter,
        figures: StepFigures | None,
    ) -> None:
        super().__init__(following)
        self._events = events
        self._figures = figures

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        began = time.monotonic()
        result = await super().execute_activity(input)
        request = input.args[0] if input.args else None
        if isinstance(result, Outcome) and isinstance(request, StepRequest):
            if self._figures:
                self._figures.ended(request, result, time.monotonic() - began)
            await self._say(event_of_step(request, result))
        if isinstance(result, Outcome) and isinstance(request, ProveRequest):
            await self._say(event_of_proof(activity.info().activity_type, request, result))
        return result

    async def _say(self, event: NodeEvent | None) -> None:
        if event:
            await self._events.write(event)
