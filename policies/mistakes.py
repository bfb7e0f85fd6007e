"""Mistakes in a policy file: what is wrong, where exactly, and what to write instead."""

from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Where in the document: keys and positions in lists, from the top."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake. `line` and `column` count from 1, 0 where there is no text to count; `path` is
    empty for the whole document."""

    source: str
    line: int
    column: int
    path: str
    what: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}:{self.column}"
        place = f"{self.path}: " if self.path else ""
        return f"{where}: {place}{self.what}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Complaint:
    """A contradiction at a place, and the way out; a `Mistake` once the place has a line."""

    path: Path
    what: str
    remedy: str


class PolicyErrors(Exception):
    """The document is not a policy. `mistakes` holds every mistake, in the order of the file."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        """At least one mistake."""
        found = {str(each): each for each in mistakes}
        self.mistakes = tuple(sorted(found.values(), key=lambda each: (each.line, each.column)))
        assert self.mistakes
        super().__init__("\n".join(str(each) for each in self.mistakes))


def format_path(path: Path) -> str:
    """`faults.gpu-lost.steps[1]`."""
    words = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return "".join(words).removeprefix(".")
