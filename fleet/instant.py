"""Instants as text: RFC 3339 in UTC, the form of Kubernetes. Nothing here knows what time it is."""

from datetime import UTC, datetime


def format_instant(at: datetime) -> str:
    """`2026-11-29T12:03:11Z`; microseconds only where there are any. Naive instants are refused."""
    if at.tzinfo is None:
        raise ValueError(f"an instant needs a time zone: {at!r}")
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def format_second(at: datetime) -> str:
    """The same without fractions, for people."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def format_micro_instant(at: datetime) -> str:
    """A MicroTime of Kubernetes: exactly six digits of the second, or the API server refuses it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_instant(text: str) -> datetime:
    """Read RFC 3339 with an offset or `Z`; raise ValueError for anything else."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"an instant needs an offset or Z: {text!r}")
    return at.astimezone(UTC)
