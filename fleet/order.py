"""What people may order an open incident to do, each with who, why and when.

Temporal does not authenticate the actor: whoever may send an update may write any name.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class Order:
    """One order of a person; `at` is when the engine took it.

    `ask` is the id of the question that APPROVE or DENY answers: a yes to one question is no yes to
    the next.
    """

    verb: Verb
    actor: str
    reason: str
    at: datetime
    ask: str = ""
