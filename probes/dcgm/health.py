"""What `dcgmi health --check` says, as JSON or as the tree that it draws. Pure, never raising.

A word that nobody here knows is kept as such: it is neither health nor a fault.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from probes.dcgm.document import first_document, items, mapping
from probes.dcgm.table import rows

OVERALL, ERRORS = "Overall Health", "Errors"
TROUBLES_LIMIT = 256


class Word(Enum):
    """DCGM's own three, and any other."""

    HEALTHY = "Healthy"
    WARNING = "Warning"
    FAILURE = "Failure"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is said of one thing: `group` and `entity` (`GPU`, `3`), the system, and DCGM's text."""

    group: str
    entity: str
    system: str
    word: Word
    said: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """One report."""

    overall: Word
    troubles: tuple[Trouble, ...] = ()


def read(text: str) -> Health | None:
    """The report in an output; None where there is none."""
    body = mapping((first_document(text) or {}).get("body")) or _drawn(text)
    if OVERALL not in body:
        return None
    troubles = [each for name in body if name != OVERALL for each in _of(name, body[name])]
    return Health(_word(body[OVERALL]), tuple(troubles[:TROUBLES_LIMIT]))


def _of(group: str, node: Any) -> Iterator[Trouble]:
    for entity, said in _children(node).items():
        systems = _children(_children(said).get(ERRORS))
        for system, error in systems.items():
            yield Trouble(group, entity, system, _word(error), _text(error))
        if not systems and _word(said) is not Word.HEALTHY:
            yield Trouble(group, entity, "", _word(said), _text(said))


def _children(node: Any) -> Mapping[str, Any]:
    return mapping(mapping(node).get("children"))


def _word(node: Any) -> Word:
    said = mapping(node).get("value")
    return next((each for each in Word if each.value == said), Word.UNLISTED)


def _text(node: Any) -> str:
    return " ".join(str(each) for each in items(mapping(node).get("overflow")))


def _drawn(text: str) -> dict[str, Any]:
    """The same tree from its drawing: rows go down by their depth, and one without a label is more
    text of the row before."""
    body: dict[str, Any] = {}
    path: list[dict[str, Any]] = []
    for row in rows(text):
        if not row.left:
            if path:
                path[-1].setdefault("overflow", []).append(row.right)
            continue
        del path[row.depth :]
        if len(path) < row.depth:
            continue
        node: dict[str, Any] = {"value": row.right}
        siblings = path[-1].setdefault("children", {}) if path else body
        siblings[row.left] = node
        path.append(node)
    return body
