"""What a provider answers, translated once into our words and into the errors of `fleet.errors`.

Pure. The answers are described in `docs/provider-openapi.yaml`; what is not as described there is
no answer.
"""

import json
from collections.abc import Mapping
from typing import Any

from fleet.errors import Ambiguous, Conflict, NotFound, Refused, TooManyRequests, Transient
from fleet.machine import Change, MachineAddress, Operation, OperationState, Power

TEXT_LIMIT = 300
"""Characters kept of the provider's words: they end in histories and questions."""

NOT_BEGUN = (429, 503)
"""Statuses that promise that nothing was begun; every other 5xx leaves that open."""


def read_object(text: bytes) -> Mapping[str, Any]:
    """The JSON object of an answer; raises ValueError."""
    thing = json.loads(text)
    if not isinstance(thing, dict):
        raise ValueError(f"not an object: {text[:100]!r}")
    return thing


def read_abilities(body: Mapping[str, Any]) -> frozenset[Change]:
    """What it can do. A change that we don't know is one that we don't ask for."""
    known = {each.value: each for each in Change}
    return frozenset(known[each] for each in body["changes"] if each in known)


def read_power(body: Mapping[str, Any]) -> Power:
    """Raises ValueError for a state that is not described."""
    return Power(body["power"])


def read_operation(body: Mapping[str, Any], operation: str) -> Operation:
    """The operation of this id; raises ValueError and KeyError where it is another or none."""
    if body["id"] != operation:
        raise ValueError(f"asked about {operation}, answered about {str(body['id'])[:80]!r}")
    machine = body["machine"]
    return Operation(
        id=operation,
        change=Change(body["change"]),
        machine=MachineAddress(
            machine["node"], machine.get("provider_id", ""), machine.get("system_uuid", "")
        ),
        state=OperationState(body["state"]),
        reason=str(body.get("reason", ""))[:TEXT_LIMIT],
        detail=str(body.get("detail", ""))[:TEXT_LIMIT],
        successor=str(body.get("successor", ""))[:TEXT_LIMIT],
    )


def error_of(status: int, text: bytes, *, change: bool, retry_after: str | None) -> Exception:
    """The error that a status means; `change`: whether the request could have begun something."""
    reason, what = _problem(text)
    hint = float(retry_after) if retry_after and retry_after.isdecimal() else None
    said = f"the provider says {status} {reason}: {what}"
    if status == 429:
        return TooManyRequests(status, reason, what, (), hint)
    if status in NOT_BEGUN:
        return Transient(said, hint)
    if status >= 500:
        return Ambiguous(said) if change else Transient(said)
    kind = {404: NotFound, 409: Conflict}.get(status, Refused)
    return kind(status, reason, f"the provider: {what}")


def _problem(text: bytes) -> tuple[str, str]:
    """Code and sentence of a `Problem`, or the text itself."""
    try:
        body = read_object(text)
    except ValueError:
        return "", text[:TEXT_LIMIT].decode(errors="replace")
    return str(body.get("reason", ""))[:TEXT_LIMIT], str(body.get("detail", ""))[:TEXT_LIMIT]
