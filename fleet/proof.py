"""Why a node carries the taint that keeps work off until it is proven, and what stays on it of its
last proof.

Both are on the Node, so that whoever restarts knows them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from fleet.instant import format_instant, parse_instant


class Why(StrEnum):
    """Why a node carries the taint, as the taint's value says. JOINED: whoever made the node put it
    on (any value that is not ours). SWEEP: it was idle, and we put it on to look. FOUND: such a
    look found a fault.

    A node in SWEEP was in service before, so where nothing can be told it is again; the others
    leave by a passed proof only.
    """

    JOINED = ""
    SWEEP = "sweep"
    FOUND = "found"

    @classmethod
    def of(cls, value: str) -> "Why":
        """By the value of the taint."""
        return cls(value) if value in (cls.SWEEP, cls.FOUND) else cls.JOINED


@dataclass(frozen=True, slots=True)
class Proof:
    """What the annotation remembers of a node: when it was proven last, and last looked at."""

    proven: datetime | None = None
    tried: datetime | None = None


NEVER = Proof()
"""Of a node that nobody remembers proving."""


def format_proof(proof: Proof) -> str:
    """The value of the annotation."""
    fields = {"proven": proof.proven, "tried": proof.tried}
    return json.dumps({name: format_instant(at) for name, at in fields.items() if at})


def parse_proof(text: str) -> Proof:
    """Read it tolerantly: what is broken is a node that nobody remembers proving."""
    try:
        fields: Mapping[str, Any] = json.loads(text)
        proven, tried = (fields.get(each) for each in ("proven", "tried"))
        return Proof(
            parse_instant(proven) if proven else None, parse_instant(tried) if tried else None
        )
    except (TypeError, ValueError, AttributeError):
        return NEVER
