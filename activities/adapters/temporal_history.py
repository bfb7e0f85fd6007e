"""What the history of an incident's run says, in our own words. Read for people, not for replay.

A history holds decisions, requests and outcomes whole, since they repeat what they rested on. What
a newer or older engine wrote and we cannot read is said to be there, and nothing else is lost.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from temporalio.api.common.v1 import Payloads
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from fleet import names
from fleet.closing import Closing
from fleet.decision import Act, Decision
from fleet.message import Granted, HoldRemoved, Message, NodeGone, Reported
from fleet.opening import Opening
from fleet.order import Order, Verb, read_said
from fleet.outcome import Outcome
from fleet.report import Report
from fleet.request import StepRequest
from fleet.step import Step

_LOCAL_ACTIVITY = "core_local_activity"
_STEPS = frozenset(Step)
_DECISION = cast("type", Decision)


@dataclass(frozen=True, slots=True)
class Began:
    """A run began; `again` says that it goes on from a run before it."""

    at: datetime
    opening: Opening
    again: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """Something arrived."""

    at: datetime
    message: Message


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided."""

    at: datetime
    decision: Decision


@dataclass(frozen=True, slots=True)
class Asked:
    """A step was asked for."""

    at: datetime
    request: StepRequest


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was over as soon as it was decided on."""

    at: datetime
    request: StepRequest
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Ended:
    """A step ended: with an outcome, or with the words of its failure."""

    at: datetime
    step: Step
    outcome: Outcome | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Over:
    """The run ended: with a closing, or as `how` says (terminated, failed, continued)."""

    at: datetime
    how: str
    closing: Closing | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that this version cannot read."""

    at: datetime
    what: str


Told = Began | Heard | Decided | Asked | Done | Ended | Over | Unread


async def read_history(
    events: Iterable[HistoryEvent], converter: DataConverter
) -> tuple[Told, ...]:
    """Everything that a reader of an incident wants to know, in the order of the history."""
    reader = _Reader(converter)
    told: list[Told] = []
    for event in events:
        try:
            found = await reader.read(event)
        except _ODD as problem:
            found = Unread(_time(event), f"event {event.event_id}: {str(problem)[:200]}")
        if found:
            told.append(found)
    return tuple(told)


class _Reader:
    """Remembers which step an activity was scheduled for, and which was decided on last."""

    def __init__(self, converter: DataConverter) -> None:
        self._converter = converter
        self._steps: dict[int, Step] = {}
        self._act: Act | None = None

    async def read(self, event: HistoryEvent) -> Told | None:
        kind = event.WhichOneof("attributes")
        match kind:
            case "workflow_execution_started_event_attributes":
                return await self._began(event)
            case "workflow_execution_signaled_event_attributes":
                return await self._signaled(event)
            case "workflow_execution_update_accepted_event_attributes":
                return await self._ordered(event)
            case "marker_recorded_event_attributes":
                return await self._marked(event)
            case "activity_task_scheduled_event_attributes":
                return await self._asked(event)
            case None:
                return None
        return await self._ended(event, kind) or await self._over(event, kind)

    async def _began(self, event: HistoryEvent) -> Told:
        started = event.workflow_execution_started_event_attributes
        opening = await self._one(started.input, Opening)
        return Began(_time(event), opening, bool(started.continued_execution_run_id))

    async def _signaled(self, event: HistoryEvent) -> Told | None:
        signal, at = event.workflow_execution_signaled_event_attributes, _time(event)
        match signal.signal_name:
            case names.SIGNAL_REPORT:
                return Heard(at, Reported(await self._one(signal.input, Report), at))
            case names.SIGNAL_NODE_GONE:
                return Heard(at, NodeGone(await self._one(signal.input, str), at))
            case names.SIGNAL_HOLD_REMOVED:
                uid, mark = await self._all(signal.input, [str, bool])
                return Heard(at, HoldRemoved(uid, mark, at))
            case names.SIGNAL_GRANT:
                return Heard(at, Granted(at))
            case names.SIGNAL_APPROVE | names.SIGNAL_DENY:
                return await self._order(at, signal.signal_name, signal.input)
        return None

    async def _ordered(self, event: HistoryEvent) -> Told | None:
        asked = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
        return await self._order(_time(event), asked.name, asked.args)

    async def _order(self, at: datetime, verb: str, payloads: Payloads) -> Told | None:
        if verb not in frozenset(Verb):
            return None
        said = read_said(await self._converter.decode(payloads.payloads))
        return Heard(at, Order(Verb(verb), said.actor, said.reason, at, said.ask))

    async def _marked(self, event: HistoryEvent) -> Told | None:
        """A decision, or a step beside it; a step that came to no outcome is asked for again."""
        marker = event.marker_recorded_event_attributes
        if marker.marker_name != _LOCAL_ACTIVITY or "result" not in marker.details:
            return None
        known = json.loads(marker.details["data"].payloads[0].data).get("activity_type")
        if known == "decide":
            decision: Decision = await self._one(marker.details["result"], _DECISION)
            self._act = decision if isinstance(decision, Act) else None
            return Decided(_time(event), decision)
        if self._act is None or known != self._act.request.step:
            return None
        outcome = await self._one(marker.details["result"], Outcome)
        return Done(_time(event), self._act.request, outcome)

    async def _asked(self, event: HistoryEvent) -> Told | None:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name not in _STEPS:
            return None
        self._steps[event.event_id] = Step(scheduled.activity_type.name)
        return Asked(_time(event), await self._one(scheduled.input, StepRequest))

    async def _ended(self, event: HistoryEvent, kind: str) -> Told | None:
        if not kind.startswith("activity_task_"):
            return None
        ended = getattr(event, kind)
        step = self._steps.get(getattr(ended, "scheduled_event_id", 0))
        if step is None or kind == "activity_task_started_event_attributes":
            return None
        if kind == "activity_task_completed_event_attributes":
            return Ended(_time(event), step, await self._one(ended.result, Outcome))
        if kind == "activity_task_cancel_requested_event_attributes":
            return None
        failure = getattr(ended, "failure", None)
        how = kind.removeprefix("activity_task_").removesuffix("_event_attributes")
        cause = failure.cause.message or failure.message if failure else ""
        return Ended(_time(event), step, None, cause or how.replace("_", " "))

    async def _over(self, event: HistoryEvent, kind: str) -> Told | None:
        head, tail = "workflow_execution_", "_event_attributes"
        how = kind.removeprefix(head).removesuffix(tail)
        if not kind.startswith(head) or how not in _ENDINGS:
            return None
        if how != "completed":
            return Over(_time(event), _ENDINGS[how])
        result = event.workflow_execution_completed_event_attributes.result
        return Over(_time(event), _ENDINGS[how], await self._one(result, Closing))

    async def _one(self, payloads: Payloads, kind: type) -> Any:
        return (await self._converter.decode(payloads.payloads[:1], [kind]))[0]

    async def _all(self, payloads: Payloads, kinds: Sequence[type]) -> Sequence[Any]:
        return await self._converter.decode(payloads.payloads, list(kinds))


_ODD = (ValueError, TypeError, LookupError, AttributeError, RuntimeError)
"""What converters meet an odd payload with."""
_ENDINGS = {
    "completed": "closed",
    "failed": "failed",
    "timed_out": "timed out",
    "terminated": "terminated from outside",
    "canceled": "cancelled from outside",
    "continued_as_new": "goes on as a new run",
}


def _time(event: HistoryEvent) -> datetime:
    return event.event_time.ToDatetime(tzinfo=UTC)
