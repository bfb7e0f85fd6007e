"""Durations as people write them: `90s`, `30m`, `24h`, `30d`, `1h30m`. Never a bare number."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from policies.terms import refusal, shown

LONGEST = timedelta(days=366)
"""A longer wait is a slip of the pen; no rule of the ladder needs a year."""

_PATTERN = r"(?=\d)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?"
_FORM = re.compile(_PATTERN, re.ASCII)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_REMEDY = "write a number with its unit, s, m, h or d, like 90s, 30m, 24h, 30d or 1h30m"


def parse_duration(text: object) -> timedelta:
    """Read a duration; it takes a `timedelta` as it is, so that code may build terms too."""
    if isinstance(text, timedelta):
        return _within_limits(text)
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise refusal(f"{shown(text)} is not a duration", _REMEDY)
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    total = days * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if total > LONGEST.total_seconds():
        raise refusal(f"{text} is longer than a year", "write at most 366d")
    return timedelta(seconds=total)


def format_duration(duration: timedelta) -> str:
    """A form that `parse_duration` reads back: `1h30m`, `24h`, `2d`, and `0s` for nothing.

    Days begin at two: people say 24 hours when they mean a day's length.
    """
    left = int(duration.total_seconds())
    units = [each for each in _SECONDS.items() if each[0] != "d" or left >= 2 * each[1]]
    words = []
    for unit, seconds in units:
        count, left = divmod(left, seconds)
        if count:
            words.append(f"{count}{unit}")
    return "".join(words) or "0s"


def _within_limits(duration: timedelta) -> timedelta:
    if not timedelta(0) <= duration <= LONGEST or duration.microseconds:
        raise refusal(f"{duration} is not a duration in whole seconds up to 366d", _REMEDY)
    return duration


Duration = Annotated[
    timedelta,
    PlainValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "format": "gpumend-duration", "pattern": f"^{_PATTERN}$"}),
]
"""A field that holds a duration."""
