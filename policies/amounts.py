"""How many of a fleet: counts, percentages, paces. All rounding of the policy happens here."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from policies.durations import format_duration, parse_duration
from policies.terms import refusal, shown

_PERCENT_PATTERN = r"(\d{1,3})(?:\.(\d))?%"
_PERCENT_FORM = re.compile(_PERCENT_PATTERN, re.ASCII)
_PACE_FORM = re.compile(r"(\d{1,4}) per (\w+)", re.ASCII)
MOST = 100_000
"""Nodes; a larger count is a slip of the pen."""


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of a whole in tenths of a percent, so that arithmetic is exact."""

    tenths: int

    def __str__(self) -> str:
        whole, tenth = divmod(self.tenths, 10)
        return f"{whole}.{tenth}%" if tenth else f"{whole}%"


@dataclass(frozen=True, slots=True)
class Pace:
    """At most `count` in each `every`."""

    count: int
    every: timedelta

    def __str__(self) -> str:
        return f"{self.count} per {format_duration(self.every)}"


def allowed(amount: int | Percent, size: int) -> int:
    """How many nodes of a scope of `size` an amount is: the maximum of a budget.

    A count is itself. A percentage rounds down, with a minimum of one, so that a small scope can
    be repaired at all; a scope without nodes allows none, since whoever asks from it is mistaken.
    """
    if isinstance(amount, int):
        return amount
    return max(1, size * amount.tenths // 1000) if size > 0 else 0


def exceeds(part: int, size: int, limit: Percent) -> bool:
    """Whether `part` of `size` is strictly above the limit; nothing of nothing is not."""
    return part * 1000 > size * limit.tenths


def parse_percent(text: object) -> Percent:
    """Read `5%` or `0.5%`: above 0, at most 100, at most one decimal."""
    if isinstance(text, Percent):
        return text
    found = _PERCENT_FORM.fullmatch(text) if isinstance(text, str) else None
    tenths = int(found[1]) * 10 + int(found[2] or 0) if found else 0
    if not 0 < tenths <= 1000:
        raise refusal(f"{shown(text)} is not a percentage above 0% up to 100%", "write it like 5%")
    return Percent(tenths)


def parse_amount(text: object) -> int | Percent:
    """Read a count of nodes (`3`) or a share of them (`5%`)."""
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= MOST:
        return text
    if isinstance(text, Percent | str):
        return parse_percent(text)
    raise refusal(
        f"{shown(text)} is neither a count of nodes nor a percentage", "write it like 3 or like 5%"
    )


def parse_pace(text: object) -> Pace:
    """Read `1 per 30s`."""
    if isinstance(text, Pace):
        return text
    found = _PACE_FORM.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise refusal(f"{shown(text)} is not a pace", "write it like 1 per 30s")
    pace = Pace(int(found[1]), parse_duration(found[2]))
    if not pace.count or not pace.every:
        raise refusal(f"{shown(text)} never comes to an end", "write at least 1 and at least 1s")
    return pace


def _plain(amount: int | Percent) -> int | str:
    return amount if isinstance(amount, int) else str(amount)


_PERCENT_SCHEMA = {
    "type": "string",
    "format": "gpumend-percentage",
    "pattern": f"^{_PERCENT_PATTERN}$",
}

PercentField = Annotated[
    Percent,
    PlainValidator(parse_percent),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(_PERCENT_SCHEMA),
]
"""A field that holds a percentage."""

AmountField = Annotated[
    int | Percent,
    PlainValidator(parse_amount),
    PlainSerializer(_plain, return_type=int | str),
    WithJsonSchema(
        {
            "format": "gpumend-amount",
            "anyOf": [{"type": "integer", "minimum": 0, "maximum": MOST}, _PERCENT_SCHEMA],
        }
    ),
]
"""A field that holds a count of nodes or a percentage of them."""

PaceField = Annotated[
    Pace,
    PlainValidator(parse_pace),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "format": "gpumend-pace", "pattern": r"^\d{1,4} per \w+$"}),
]
"""A field that holds a pace."""
