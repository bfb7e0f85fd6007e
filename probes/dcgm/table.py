"""The boxes of two columns that `dcgmi` prints for people. Parsing only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LINES_LIMIT = 4_096
_ROW = re.compile(r"\s*\|([^|]*)\|(.*)\|\s*")
_SECTION = re.compile(r"\s*[|+]-+\s+(\w[\w ]*?)\s+-+[+|].*")
_ARROW = "-> "


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its two cells, how deep the first is indented, and the section that it stands in."""

    left: str
    right: str
    depth: int = 0
    section: str = ""


def rows(text: str) -> Iterator[Row]:
    """The rows of two cells, in order; frames, headers and everything else are passed over."""
    section = ""
    for line in text.splitlines()[:LINES_LIMIT]:
        if head := _SECTION.fullmatch(line):
            section = head[1]
        elif found := _ROW.fullmatch(line):
            left, right = found.groups()
            yield Row(_label(left), right.strip(), _depth(left), section)


def _label(left: str) -> str:
    return left.partition(_ARROW)[2].strip() if _ARROW in left else left.strip()


def _depth(left: str) -> int:
    """`-> ` stands three characters to the right for each level."""
    return (left.index(_ARROW) - 1) // 3 + 1 if _ARROW in left else 0
