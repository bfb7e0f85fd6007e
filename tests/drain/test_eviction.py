"""What an answer to an eviction means, and when it is asked again."""

from datetime import UTC, datetime

import pytest

from activities.adapters.kubernetes import KubernetesApi
from activities.budgets import budgets_of, describe
from activities.eviction import LAST_DELAY, SLOW_DELAY, Answer, Reaction, delay, read_answer
from activities.evictions import LONGEST_GRACE, Evictions
from activities.pods import PlannedPod, PodClass
from fleet.errors import Ambiguous, Conflict, NotFound, Refused, TooManyRequests, Transient

BUDGET = ("DisruptionBudget",)

TABLE = [
    (None, Reaction.ACCEPTED, None),
    (NotFound(404, "NotFound", "m"), Reaction.GONE, None),
    (Conflict(409, "Conflict", "uid"), Reaction.GONE, None),
    (TooManyRequests(429, "TooManyRequests", "m", BUDGET), Reaction.BLOCKED, None),
    (TooManyRequests(429, "TooManyRequests", "m", BUDGET, 10.0), Reaction.AGAIN, 10.0),
    (TooManyRequests(429, "", "busy", (), 1.0), Reaction.AGAIN, 1.0),
    (Refused(500, "InternalError", "more than one PodDisruptionBudget"), Reaction.STUCK, None),
    (Refused(403, "Forbidden", "m", ("NamespaceTerminating",)), Reaction.AGAIN, LAST_DELAY),
    (Refused(403, "Forbidden", "negative allowance"), Reaction.STUCK, None),
    (Refused(400, "BadRequest", "denied by webhook"), Reaction.STUCK, None),
    (Transient("504", 10.0), Reaction.AGAIN, 10.0),
    (Ambiguous("lost"), Reaction.AGAIN, None),
]


@pytest.mark.parametrize(("error", "reaction", "hint"), TABLE)
def test_every_answer_has_one_reaction(error, reaction, hint):
    answer = read_answer(error)
    assert (answer.reaction, answer.hint) == (reaction, hint)


def test_an_error_that_is_no_answer_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        read_answer(ZeroDivisionError())


def test_a_budget_is_asked_ever_more_slowly_and_a_person_more_slowly_still():
    blocked = Answer(Reaction.BLOCKED)
    delays = [delay(blocked, refusals, 0.5) for refusals in range(1_000)]
    assert delays[:5] == [1.0, 2.0, 4.0, 8.0, LAST_DELAY]
    assert max(delays) == LAST_DELAY
    assert delay(Answer(Reaction.STUCK), 0, 0.5) == SLOW_DELAY


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 0.8), (1.0, 1.2)])
def test_pods_do_not_ask_in_step(jitter, seconds):
    assert delay(Answer(Reaction.BLOCKED), 0, jitter) == pytest.approx(seconds)


def test_a_hint_is_followed_but_not_for_ever():
    assert delay(Answer(Reaction.AGAIN, hint=10.0), 0, 0.5) == 10.0
    assert delay(Answer(Reaction.AGAIN, hint=86_400.0), 0, 0.5) == 60.0


def budget(name="b", selector=None, **status):
    spec = {} if selector is None else {"selector": selector}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Whatever"}]}, False),
    ],
)
def test_budgets_are_found_by_their_selectors(selector, selected):
    assert bool(budgets_of({"app": "web"}, [budget(selector=selector)])) is selected


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            {"desiredHealthy": 2, "currentHealthy": 2, "expectedPods": 3},
            "needs 2 healthy and has 2",
        ),
        (
            {"desiredHealthy": 3, "currentHealthy": 3, "expectedPods": 3},
            "never allows a disruption",
        ),
        ({"desiredHealthy": 1, "currentHealthy": 0, "expectedPods": 2}, "no replica is healthy"),
        ({}, "needs 0 healthy and has 0"),
    ],
)
def test_a_budget_is_described_in_numbers_and_what_they_mean(status, words):
    assert words in describe(budget(**status))


class Recorder(KubernetesApi):
    """A port that only takes notes."""

    def __init__(self):
        self.calls = []

    async def create(self, path, body):
        self.calls.append((path, body))
        return {}

    async def delete(self, path, *, uid, grace_seconds=None):
        self.calls.append((path, uid, grace_seconds))
        return {}


def planned(grace):
    return PlannedPod("ns", f"p{grace}", f"u{grace}", PodClass.EVICT, grace=grace)


async def test_r13_a_forced_delete_keeps_a_grace_of_at_least_one_second_and_names_the_uid():
    port, at = Recorder(), datetime(2026, 11, 29, tzinfo=UTC)
    evictions = Evictions(port, lambda: at, lambda: 0.5)
    await evictions.delete([planned(grace) for grace in (-5, 0, 1, 30, 86_400)])
    assert sorted(port.calls) == sorted(
        [
            ("/api/v1/namespaces/ns/pods/p-5", "u-5", 1),
            ("/api/v1/namespaces/ns/pods/p0", "u0", 1),
            ("/api/v1/namespaces/ns/pods/p1", "u1", 1),
            ("/api/v1/namespaces/ns/pods/p30", "u30", 30),
            ("/api/v1/namespaces/ns/pods/p86400", "u86400", LONGEST_GRACE),
        ]
    )


async def test_a_pod_that_was_asked_for_is_not_asked_again_before_it_is_due():
    port, at = Recorder(), datetime(2026, 11, 29, tzinfo=UTC)
    evictions = Evictions(port, lambda: at, lambda: 0.5)
    await evictions.ask([planned(30)])
    await evictions.ask([planned(30)])
    assert len(port.calls) == 1
    assert port.calls[0][1]["deleteOptions"] == {"preconditions": {"uid": "u30"}}
    await evictions.delete([planned(30)])
    assert len(port.calls) == 2
