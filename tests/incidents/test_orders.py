"""Which order of a person an incident takes: what it says yes to must do something."""

from datetime import timedelta

import pytest

from fleet.incident import Incident
from fleet.message import HoldRemoved
from fleet.order import MOST_CHARACTERS, Order, Said, Verb, read_said
from fleet.outcome import Outcome, OutcomeKind
from fleet.request import StepRequest
from fleet.step import Step
from tests.incidents.virtual import START, an_opening
from workflows.operators import refusal

MINUTE = timedelta(minutes=1)


def performed(incident: Incident, step: Step, minute: int) -> Incident:
    at = START + minute * MINUTE
    request = StepRequest("o", step, "m1", incident.node, "b1", at + MINUTE)
    return incident.with_step(request, at).with_outcome(Outcome(OutcomeKind.SUCCEEDED), at)


def said(incident: Incident, verb: Verb, minute: int) -> Incident:
    return incident.with_message(Order(verb, "alice", "because", START + minute * MINUTE))


HELD = performed(Incident.open(an_opening(), START), Step.HOLD, 0)
TAKEN = HELD.with_message(HoldRemoved("u1", False, START + MINUTE))
PAUSED = said(HELD, Verb.PAUSE, 1)
IN_SERVICE = performed(HELD, Step.RELEASE, 1)
CASES = [
    (HELD, Verb.PAUSE, None),
    (HELD, Verb.RESUME, "nothing to resume"),
    (HELD, Verb.RELEASE, None),
    (HELD, Verb.CANCEL, None),
    (PAUSED, Verb.PAUSE, "paused already"),
    (PAUSED, Verb.RESUME, None),
    (said(PAUSED, Verb.RESUME, 2), Verb.RESUME, "nothing to resume"),
    (TAKEN, Verb.RELEASE, "taken off by hand: resume"),
    (TAKEN, Verb.RESUME, None),
    (TAKEN, Verb.CANCEL, None),
    (said(TAKEN, Verb.RESUME, 2), Verb.RELEASE, None),
    (performed(TAKEN, Step.HOLD, 2), Verb.RELEASE, None),
    (IN_SERVICE, Verb.RELEASE, "in service already"),
    (said(HELD, Verb.CANCEL, 1), Verb.CANCEL, "cancelled already"),
]


@pytest.mark.parametrize(("incident", "verb", "why"), CASES)
def test_an_order_is_taken_or_refused_with_its_reason(incident, verb, why):
    answer = refusal(verb, Said("alice", "because"), incident, None)
    assert answer is None if why is None else answer and why in answer


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize(
    ("actor", "reason"),
    [("", "why"), ("alice", " "), ("a" * (MOST_CHARACTERS + 1), "why")],
)
def test_nobody_orders_without_a_name_and_a_reason_that_fit(verb, actor, reason):
    assert refusal(verb, Said(actor, reason), PAUSED, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"actor": " ada ", "reason": "why"}], Said("ada", "why")),
        ([{"actor": "ada", "reason": "why", "ask": "x-1"}], Said("ada", "why", "x-1")),
        ([{"reason": None}], Said("", "")),
        ([Said("ada", "why")], Said("ada", "why")),
    ],
)
def test_what_a_person_sends_is_one_object(given, said):
    assert read_said(given) == said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "one JSON object"),
        (["ada", "why"], "one JSON object"),
        (["ada"], "one JSON object"),
        ([["ada", "why"]], "one JSON object"),
        ([None], "one JSON object"),
        ([{"actor": "ada", "reason": 3}], "reason is text"),
        ([{"actor": {"name": "ada"}}], "actor is text"),
        ([{"who": "ada", 3: "x"}], "there is no 3, who in an order"),
    ],
)
def test_what_cannot_be_read_is_refused_with_how_it_is_written(given, words):
    with pytest.raises(ValueError, match=words) as refused:
        read_said(given)
    assert '{"actor"' in str(refused.value)
