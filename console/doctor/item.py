"""One thing that the doctor looked at: how it is, and the command that mends it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """OK; NOTE: worth knowing; WRONG: mend it; UNKNOWN: could not be told; AWAY: no answer."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    AWAY = "away"


@dataclass(frozen=True, slots=True)
class Item:
    """`mend` is a command, a sentence where no command can do it, empty where all is well."""

    subject: str
    state: State
    says: str
    mend: str = ""


def ok(subject: str, says: str) -> Item:
    """As it should be."""
    return Item(subject, State.OK, says)


def note(subject: str, says: str, mend: str = "") -> Item:
    """Right, and worth knowing."""
    return Item(subject, State.NOTE, says, mend)


def wrong(subject: str, says: str, mend: str) -> Item:
    """To be mended."""
    return Item(subject, State.WRONG, says, mend)


def unknown(subject: str, says: str) -> Item:
    """Nobody could tell."""
    return Item(subject, State.UNKNOWN, says)


def some(names: Iterable[str], most: int = 5) -> str:
    """A few names, and how many more."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{', '.join(every[:most])}{more}"
