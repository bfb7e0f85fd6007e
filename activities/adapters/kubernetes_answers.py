"""Answers of the API server, translated once into the errors of `fleet.errors`. Pure.

What a caller does about an error is not decided here.
"""

import json
from collections.abc import Mapping
from typing import Any

from fleet.errors import Ambiguous, Conflict, Expired, NotFound, Refused, TooManyRequests, Transient

TWO_BUDGETS = "more than one PodDisruptionBudget"
"""A 500 that no repetition mends: two budgets select one pod, until a person changes one."""

MESSAGE_LIMIT = 2_000
"""Characters of a server's message that we carry: it ends in histories and logs."""

_TOO_MANY = 429
_SERVER_SIDE = 500
_UNSURE = (502, 504)
"""A gateway or a time-out spoke for the server: whatever was asked may be going on behind it."""

_BY_CODE = {404: NotFound, 409: Conflict, 410: Expired}


def error_of(
    code: int, body: bytes, *, write: bool, retry_after: str | None = None
) -> Transient | Ambiguous | Refused:
    """The error that an HTTP answer of 400 and above means; `retry_after` is the header."""
    status = read_status(body)
    return error_of_status(status, code=code, write=write, hint=_seconds(retry_after))


def error_of_status(
    status: Mapping[str, Any], *, code: int, write: bool, hint: float | None = None
) -> Transient | Ambiguous | Refused:
    """The error that a Status object means, be it an answer's or a watch's."""
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "")[:MESSAGE_LIMIT]
    details = status.get("details") or {}
    causes = tuple(str(each.get("reason", "")) for each in details.get("causes") or ())
    after = _seconds(details.get("retryAfterSeconds")) or hint
    if code == _TOO_MANY:
        return TooManyRequests(code, reason, message, causes, retry_after=after)
    if code < _SERVER_SIDE or TWO_BUDGETS in message:
        return _BY_CODE.get(code, Refused)(code, reason, message, causes)
    what = f"{code} {reason}: {message}"
    if write and code in _UNSURE and after is None:
        return Ambiguous(what)
    return Transient(what, retry_after=after)


def read_status(body: bytes) -> Mapping[str, Any]:
    """The Status in a body; what is none (a proxy's page) becomes one with the text as message."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if isinstance(status, dict):
        return status
    return {"message": body[:MESSAGE_LIMIT].decode(errors="replace")}


def _seconds(hint: object) -> float | None:
    """A hint in seconds; the date form of Retry-After is not one that the API server writes."""
    try:
        seconds = float(str(hint))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
