"""A person's word on a node that it is sick: the annotation `gpumend.io/open`.

The watcher makes an incident of it and then notes which: a request that names an incident is being
looked after while that incident's mark is on the node, and is over when it is not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from fleet.fault import FaultName

CODE = "person"
"""The code of a fault that a person has found; no check can prove or disprove it."""
LONGEST = 500
"""Characters of a reason; actors are shorter."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """`incident` is the id of the mark that took it up; empty while nobody has."""

    fault: FaultName
    reason: str
    actor: str
    incident: str = ""


def format_open_request(request: OpenRequest) -> str:
    """The value of the annotation."""
    fields = {
        "fault": request.fault.value,
        "reason": request.reason,
        "actor": request.actor,
        **({"incident": request.incident} if request.incident else {}),
    }
    return json.dumps(fields, ensure_ascii=False)


def parse_open_request(text: str) -> OpenRequest:
    """Read an annotation; raise ValueError that says what to write instead."""
    try:
        fields: Mapping[str, object] = json.loads(text)
        return OpenRequest(
            fault=_fault(_words(fields, "fault")),
            reason=_words(fields, "reason"),
            actor=_words(fields, "actor"),
            incident=str(fields.get("incident", "")),
        )
    except (TypeError, AttributeError, ValueError) as problem:
        shown = text[:100]
        raise ValueError(
            f'{problem}: write {{"fault", "reason", "actor"}} as JSON, not {shown!r}'
        ) from problem


def _words(fields: Mapping[str, object], name: str) -> str:
    text = fields.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
        raise ValueError(f"{name} must be 1 to {LONGEST} characters")
    return text


def _fault(name: str) -> FaultName:
    try:
        return FaultName(name)
    except ValueError:
        raise ValueError(f"there is no fault {name!r}; gpumend policy explain lists them") from None
