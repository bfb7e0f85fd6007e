"""What people may order an open incident to do, each with who, why and when.

Temporal does not authenticate the actor: whoever may send an update may write any name.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Verb(StrEnum):
    """PAUSE: do nothing until resumed. RESUME: go on (after a hand-off: look again first).

    CANCEL: stop for good, undo what we did. RELEASE: give the node back on the person's word, and
    watch it for the probation.
    """

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Order:
    """One order of a person; `at` is when the engine took it."""

    verb: Verb
    actor: str
    reason: str
    at: datetime
