"""What one incident costs: history events, actions as they are billed, calls to the API server.

Counted from the history of the run and from the journal of `incident_worker`; who makes the
incident is `incident_stage`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from fleet.step import Step

BILLED = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        EventType.EVENT_TYPE_TIMER_STARTED,
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    }
)
"""One action each. The start and the signal that comes with it are one together."""
READS, WRITES, WATCHES = ("get", "page"), ("create", "patch", "delete"), ("watch",)
STEPS = frozenset(each.value for each in Step)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of the worker's port to Kubernetes.

    `during`: how many in which activity; `of_what`: the same by call and thing, `drain: get nodes`.
    """

    reads: int
    writes: int
    watches: int
    during: Mapping[str, int]
    of_what: Mapping[str, int]

    @property
    def all(self) -> int:
        """Their sum."""
        return self.reads + self.writes + self.watches


@dataclass(frozen=True, slots=True)
class Cost:
    """What a whole incident was. `steps` are those that were performed, in order."""

    events: int
    actions: int
    calls: Calls
    steps: tuple[str, ...]


def cost_of(history: Sequence[HistoryEvent], journal: Iterable[str], workflow_id: str) -> Cost:
    """The cost of one incident: its whole history, and the calls of its steps."""
    return Cost(len(history), actions(history), calls_of(journal, workflow_id), steps(history))


def calls_of(journal: Iterable[str], workflow_id: str) -> Calls:
    """Count the lines of a journal that are a workflow's; a last line that was cut is none."""
    lines = [json.loads(line) for line in journal if line.endswith("\n")]
    ours = [each for each in lines if each["of"] == workflow_id]
    by_call = Counter(each["call"] for each in ours)
    reads, writes, watches = (
        sum(by_call.pop(call, 0) for call in kind) for kind in (READS, WRITES, WATCHES)
    )
    if by_call:
        raise ValueError(f"the journal has calls that the port does not know: {sorted(by_call)}")
    during = Counter(each["during"] for each in ours)
    of_what = Counter(f"{each['during']}: {each['call']} {_thing(each['path'])}" for each in ours)
    return Calls(reads, writes, watches, dict(during.most_common()), dict(of_what.most_common()))


def _thing(path: str) -> str:
    """The resource that a path of the API is about, with its subresource: `pods/eviction`."""
    parts = path.strip("/").split("/")
    parts = parts[2 if parts[0] == "api" else 3 :]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join(parts[::2])


def actions(history: Iterable[HistoryEvent]) -> int:
    """Actions by the cloud's price list; the local activities of one workflow task are one."""
    count, last = 0, None
    for event in history:
        kind = event.event_type
        local = event.marker_recorded_event_attributes.workflow_task_completed_event_id
        count += kind in BILLED or bool(local and local != last)
        last = local or last
        if kind == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            count += event.activity_task_started_event_attributes.attempt
    return count


def steps(history: Iterable[HistoryEvent]) -> tuple[str, ...]:
    """The steps that were performed, as activities or beside their decision, in order."""
    return tuple(each for each in map(_performed, history) if each in STEPS)


def _performed(event: HistoryEvent) -> str:
    if event.HasField("activity_task_scheduled_event_attributes"):
        return event.activity_task_scheduled_event_attributes.activity_type.name
    if event.HasField("marker_recorded_event_attributes"):
        details = event.marker_recorded_event_attributes.details
        # asked for by `in` first: a protobuf map makes an entry of a key that is only read
        for data in details["data"].payloads if "data" in details else ():
            return str(json.loads(data.data).get("activity_type", ""))
    return ""
