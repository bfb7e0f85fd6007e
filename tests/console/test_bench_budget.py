"""The parts of `gpumend bench budget` that count what an incident costs."""

import io
import json
from contextlib import asynccontextmanager

import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.testing import ActivityEnvironment

from console.bench.incident_cost import actions, calls_of, cost_of, steps
from console.bench.incident_worker import WrittenDown
from fleet.ports import PatchType

RUN = "node/c1/n1/0a1b2c3d"


class Answering:
    """Answers every call with the name of its method and with what it was asked."""

    def watch(self, *asked, **more):
        return self._watch("watch", asked, more)

    @asynccontextmanager
    async def _watch(self, *said):
        yield said

    def __getattr__(self, name):
        async def answer(*asked, **more):
            return name, asked, more

        return answer


def line(call, during="drain", path="/api/v1/nodes/n1", of=RUN):
    return json.dumps({"call": call, "path": path, "of": of, "during": during}) + "\n"


def local(task, name):
    """A local activity that ended, as the marker that Temporal's SDK records of it."""
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_MARKER_RECORDED)
    marker = event.marker_recorded_event_attributes
    marker.workflow_task_completed_event_id = task
    data = Payload(data=json.dumps({"activity_type": name}).encode())
    marker.details["data"].CopyFrom(Payloads(payloads=[data]))
    return event


def activity(name, attempt=1):
    """An activity that was scheduled and then started for the last time."""
    scheduled = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    scheduled.activity_task_scheduled_event_attributes.activity_type.name = name
    started = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    started.activity_task_started_event_attributes.attempt = attempt
    return scheduled, started


def billed(kind):
    return HistoryEvent(event_type=EventType.Value(f"EVENT_TYPE_{kind}"))


@pytest.mark.parametrize(
    ("method", "asked", "more"),
    [
        ("get", ("/n/1",), {}),
        ("page", ("/n",), {"query": {"a": "b"}, "limit": 7, "token": "t"}),
        ("create", ("/n", {"a": 1}), {}),
        ("patch", ("/n/1", {"a": 1}, PatchType.MERGE), {}),
        ("delete", ("/n/1",), {"uid": "u1", "grace_seconds": 0}),
    ],
)
async def test_a_call_is_written_down_once_and_its_answer_passes(method, asked, more):
    journal = io.StringIO()
    port = WrittenDown(Answering(), journal)
    assert await getattr(port, method)(*asked, **more) == (method, asked, more)
    (only,) = map(json.loads, journal.getvalue().splitlines())
    assert (only["call"], only["during"], only["path"]) == (method, "", asked[0])


async def test_a_watch_is_one_call_and_an_activity_is_named():
    journal = io.StringIO()
    port = WrittenDown(Answering(), journal)

    async def look():
        async with port.watch("/n", resource_version="7") as said:
            return said

    said = await ActivityEnvironment().run(look)
    assert said == ("watch", ("/n",), {"resource_version": "7", "query": None})
    (only,) = map(json.loads, journal.getvalue().splitlines())
    assert (only["call"], only["during"]) == (
        "watch",
        ActivityEnvironment.default_info().activity_type,
    )
    assert only["of"] == ActivityEnvironment.default_info().workflow_id


def test_calls_count_by_what_they_do_where_they_are_the_incidents():
    journal = [
        line("get", "hold"),
        *(line(each) for each in ("page", "create", "patch", "delete", "watch", "watch")),
        line("page", "sweep-candidates", of="sweep"),
        line("get", "", of=""),
        '{"call": "get", "pa',
    ]
    found = calls_of(journal, RUN)
    assert (found.reads, found.writes, found.watches, found.all) == (2, 3, 2, 7)
    assert found.during == {"drain": 6, "hold": 1}
    assert found.of_what["hold: get nodes"] == 1
    assert sum(found.of_what.values()) == 7


@pytest.mark.parametrize(
    ("path", "thing"),
    [
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/nodes/n1", "nodes"),
        ("/api/v1/namespaces/default/pods/p/eviction", "pods/eviction"),
        ("/apis/apps/v1/namespaces/gpumend/daemonsets/agent", "daemonsets"),
        ("/version", ""),
    ],
)
def test_calls_are_told_apart_by_what_they_are_about(path, thing):
    found = calls_of([line("get", path=path)], RUN)
    assert found.of_what == {f"drain: get {thing}": 1}


def test_a_call_that_is_none_of_the_port_is_refused():
    with pytest.raises(ValueError, match="does not know: \\['connect'\\]"):
        calls_of([line("connect")], RUN)


@pytest.mark.parametrize(
    ("history", "most"),
    [
        ([], 0),
        ([billed("WORKFLOW_EXECUTION_STARTED"), billed("WORKFLOW_EXECUTION_SIGNALED")], 1),
        ([billed("TIMER_STARTED"), billed("TIMER_FIRED")], 1),
        ([billed("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES")], 1),
        ([billed("WORKFLOW_EXECUTION_UPDATE_ACCEPTED")], 1),
        ([*activity("drain", attempt=3)], 3),
        ([local(4, "decide"), local(4, "hold"), local(4, "decide")], 1),
        ([local(4, "decide"), local(9, "decide")], 2),
    ],
)
def test_actions_are_counted_as_they_are_billed(history, most):
    assert actions(history) == most


def test_the_cost_is_of_one_incident():
    history = [local(4, "decide"), local(4, "hold"), *activity("drain"), *activity("tell")]
    assert steps(history) == ("hold", "drain")
    cost = cost_of(history, [line("get")], RUN)
    assert (cost.events, cost.actions, cost.calls.all) == (6, 3, 1)
