"""What people may order an open incident to do, each with who, why and when.

Temporal does not authenticate the actor: whoever may send an update may write any name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.step import Step

MOST_CHARACTERS = 500
"""Of an actor and of a reason each."""


class Verb(StrEnum):
    """PAUSE: do nothing until resumed. RESUME: go on (after a hand-off: look again first).

    CANCEL: stop for good, undo what we did. RELEASE: give the node back on the person's word, and
    watch it for the probation. SKIP: leave out the step that is waited for or would come next.
    APPROVE and DENY answer the question that is pending.
    """

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RELEASE = "release"
    SKIP = "skip"
    APPROVE = "approve"
    DENY = "deny"


ANSWERS = (Verb.APPROVE, Verb.DENY)
"""The verbs that answer a question and carry its id."""

EXAMPLE = '{"actor": "who you are", "reason": "why"}'
EXAMPLE_ANSWER = '{"actor": "who you are", "reason": "why", "ask": "ID"}'


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says with a verb: the one argument of every update, and of both signals."""

    actor: str
    reason: str
    ask: str = ""


def read_said(given: Sequence[object]) -> Said:
    """Read the arguments of a message as a person, a program or the Temporal UI sent them.

    Raises ValueError with a sentence that says what is wrong and how it is written.
    """
    said = given[0] if len(given) == 1 else None
    if isinstance(said, Said):
        return said
    if not isinstance(said, Mapping):
        raise ValueError(f"give one JSON object: {EXAMPLE}, with the ask's id to approve or deny")
    foreign = sorted(str(key) for key in said if key not in ("actor", "reason", "ask"))
    if foreign:
        raise ValueError(f"there is no {', '.join(foreign)[:100]} in an order: {EXAMPLE_ANSWER}")
    return Said(_text(said, "actor"), _text(said, "reason"), _text(said, "ask"))


def _text(said: Mapping[object, object], name: str) -> str:
    """A field of what was said; what is not there is empty, and refused where it is needed."""
    found = said.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ValueError(f"{name} is text, in quotes: {EXAMPLE_ANSWER}")
    return found.strip()


@dataclass(frozen=True, slots=True)
class Order:
    """One order of a person; `at` is when the engine took it.

    `ask` is the id of the question that APPROVE or DENY answers (a yes to one question is no yes to
    the next), `evidence` the digest of what was shown with it. `skips` is what a SKIP leaves out.
    """

    verb: Verb
    actor: str
    reason: str
    at: datetime
    ask: str = ""
    evidence: str = ""
    skips: Step | None = None
