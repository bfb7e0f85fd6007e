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
    look found a fault. PAIRS: it was idle, and is in a trial in pairs. ODD: such a trial found it
    odd.

    A node in SWEEP or PAIRS was in service before, so where nothing can be told it is again; the
    others leave by a passed proof only, one in ODD by a trial in which it did well.
    """

    JOINED = ""
    SWEEP = "sweep"
    FOUND = "found"
    PAIRS = "pairs"
    ODD = "odd"

    @classmethod
    def of(cls, value: str) -> "Why":
        """By the value of the taint."""
        return cls(value) if value in tuple(cls) else cls.JOINED


IN_SERVICE = (Why.SWEEP, Why.PAIRS)
"""Who was in service when the taint came."""
BY_TRIALS = (Why.PAIRS, Why.ODD)
"""Whom a trial in pairs proves."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What the annotation remembers of a node: when it was proven last, and last looked at; when a
    trial in pairs last told how it is, and when one last could not."""

    proven: datetime | None = None
    tried: datetime | None = None
    paired: datetime | None = None
    unpaired: datetime | None = None


NEVER = Proof()
"""Of a node that nobody remembers proving."""


_FIELDS = ("proven", "tried", "paired", "unpaired")


def format_proof(proof: Proof) -> str:
    """The value of the annotation."""
    fields = {name: getattr(proof, name) for name in _FIELDS}
    return json.dumps({name: format_instant(at) for name, at in fields.items() if at})


def parse_proof(text: str) -> Proof:
    """Read it tolerantly: what is broken is a node that nobody remembers proving."""
    try:
        fields: Mapping[str, Any] = json.loads(text)
        said = {name: fields.get(name) for name in _FIELDS}
        return Proof(**{name: parse_instant(at) for name, at in said.items() if at})
    except (TypeError, ValueError, AttributeError):
        return NEVER
