"""What an answer of the API server means, as a table."""

import json

import pytest

from activities.adapters.kubernetes_answers import error_of
from activities.adapters.kubernetes_lines import LINE_LIMIT, Lines, read_event
from fleet.errors import Ambiguous, Conflict, Expired, NotFound, Refused, TooManyRequests, Transient


def status(code, reason="", message="", **details) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource ..."
BUDGET = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2 and has 2"}]}

TABLE = [
    # code, body, Retry-After header, is it a write, the error, seconds to wait
    (404, status(404, "NotFound"), None, True, NotFound, None),
    (409, status(409, "Conflict"), None, True, Conflict, None),
    (409, status(409, "AlreadyExists"), None, True, Conflict, None),
    (410, status(410, "Expired"), None, False, Expired, None),
    (410, status(410, "Gone"), None, False, Expired, None),
    (401, status(401, "Unauthorized"), None, True, Refused, None),
    (403, status(403, "Forbidden"), None, True, Refused, None),
    (422, status(422, "Invalid"), None, True, Refused, None),
    (429, status(429, "TooManyRequests", **BUDGET), None, True, TooManyRequests, None),
    (
        429,
        status(429, "TooManyRequests", retryAfterSeconds=10, **BUDGET),
        "10",
        True,
        TooManyRequests,
        10.0,
    ),
    (429, b"Too many requests, please try again later.", "1", True, TooManyRequests, 1.0),
    (500, status(500, "InternalError", TWO_BUDGETS), None, True, Refused, None),
    (500, status(500, "InternalError"), None, True, Transient, None),
    (500, status(500, "ServerTimeout", retryAfterSeconds=3), None, True, Transient, 3.0),
    (503, status(503, "ServiceUnavailable"), "2", True, Transient, 2.0),
    (503, b"<html>no backend</html>", None, False, Transient, None),
    (504, status(504, "Timeout", retryAfterSeconds=10), None, True, Transient, 10.0),
    (504, status(504, "Timeout"), None, True, Ambiguous, None),
    (504, status(504, "Timeout"), None, False, Transient, None),
    (502, b"bad gateway", None, True, Ambiguous, None),
    (502, b"bad gateway", None, False, Transient, None),
    (503, status(503), "Fri, 31 Dec 2027 23:59:59 GMT", True, Transient, None),
    (429, b"[]", "inf", True, TooManyRequests, None),
]


@pytest.mark.parametrize(("code", "body", "header", "write", "error", "after"), TABLE)
def test_every_answer_means_one_error(code, body, header, write, error, after):
    found = error_of(code, body, write=write, retry_after=header)
    assert type(found) is error
    assert getattr(found, "retry_after", None) == after


def test_a_budgets_refusal_keeps_its_cause_and_overload_has_none():
    budget = error_of(429, status(429, "TooManyRequests", **BUDGET), write=True)
    overload = error_of(429, b"busy", write=True, retry_after="1")
    assert isinstance(budget, TooManyRequests)
    assert isinstance(overload, TooManyRequests)
    assert budget.causes == ("DisruptionBudget",)
    assert overload.causes == ()


def test_a_refusal_carries_the_servers_words_but_not_without_limit():
    refused = error_of(403, status(403, "Forbidden", "x" * 100_000), write=True)
    assert isinstance(refused, Refused)
    assert len(refused.message) == 2_000


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_lines_are_the_same_however_the_stream_is_cut(size):
    stream = b'{"a":1}\n\n{"b":2}\n{"c":3}\n{"unfinished'
    lines = Lines()
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert [line for chunk in chunks for line in lines.feed(chunk)] == [
        b'{"a":1}',
        b'{"b":2}',
        b'{"c":3}',
    ]


def test_a_line_without_end_is_refused_before_memory_is_gone():
    lines = Lines()
    assert list(lines.feed(b"x" * LINE_LIMIT)) == []
    with pytest.raises(Transient, match="more than"):
        list(lines.feed(b"x"))


def test_a_bookmark_is_passed_on():
    event = read_event(
        b'{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"7"}}}'
    )
    assert (event.type, event.object["metadata"]["resourceVersion"]) == ("BOOKMARK", "7")


@pytest.mark.parametrize(
    ("code", "error"), [(410, Expired), (500, Transient), (429, TooManyRequests), (403, Refused)]
)
def test_an_error_event_is_raised_as_what_it_means(code, error):
    with pytest.raises(error):
        read_event(b'{"type":"ERROR","object":' + status(code) + b"}")


@pytest.mark.parametrize("line", [b"garbage", b"[]", b'{"type":"ADDED"}', b"\xff\xfe"])
def test_what_is_no_event_breaks_the_watch_not_the_process(line):
    with pytest.raises(Transient):
        read_event(line)
