"""What time it is, as an argument: every activity takes a clock, so that tests can own it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""The present, aware."""


def utc_now() -> datetime:
    """The machine's own clock."""
    return datetime.now(UTC)
