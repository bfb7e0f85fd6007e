"""Events are written beside the steps: a step never fails or waits for want of one."""

import asyncio
import logging

import pytest
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities import event_writer
from activities.event_writer import EventWriter
from activities.node_event import EVENTS
from activities.witness import Witness
from fleet.errors import Ambiguous, NotFound, Refused, Transient
from fleet.outcome import Outcome, OutcomeKind
from fleet.step import Step
from tests.cluster import identity, now, request_for

DONE = Outcome(OutcomeKind.SUCCEEDED)


class Deaf:
    """A port to an API server that answers everything with one problem."""

    def __init__(self, problem=None):
        self.problem = problem

    async def create(self, path, body):
        del path, body
        if self.problem is None:
            await asyncio.Event().wait()
        raise self.problem

    async def get(self, path):
        raise NotFound(404, "NotFound", path)


class Ended(ActivityInboundInterceptor):
    def __init__(self, result):
        self.result = result

    async def execute_activity(self, input):  # noqa: A002
        del input
        return self.result


def beside(kubernetes, result=DONE):
    return Witness(EventWriter(kubernetes, now)).intercept_activity(Ended(result))


def asked(*args):
    return ExecuteActivityInput(fn=print, args=args, executor=None, headers={})


@pytest.mark.parametrize(
    "problem",
    [
        Transient("away"),
        Ambiguous("lost"),
        Refused(403, "Forbidden", "no right"),
        None,
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_step_ends_as_it_ended_whatever_becomes_of_its_event(problem, monkeypatch, caplog):
    monkeypatch.setattr(event_writer, "LIMIT_SECONDS", 0.01)
    with caplog.at_level(logging.WARNING):
        result = await beside(Deaf(problem)).execute_activity(
            asked(request_for(identity(), Step.DRAIN))
        )
    assert result is DONE
    assert "what=event-lost reason=IncidentDrained node=n1" in caplog.text


@pytest.mark.parametrize("args", [(), ("no request",)])
async def test_what_is_no_step_is_let_through_untouched(args):
    assert await beside(Deaf(), "answer").execute_activity(asked(*args)) == "answer"


def test_events_have_one_place():
    assert EVENTS == "/api/v1/namespaces/default/events"
