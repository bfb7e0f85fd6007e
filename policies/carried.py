"""What a run of an incident hands to the next one.

It is read back in a workflow, so it stands here and not beside the workflow: Temporal's sandbox
would make its types anew for each run, and what is known of a type would be worked out as often.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.decision import Ask
from fleet.incident import Incident
from fleet.message import Message


@dataclass(frozen=True, slots=True)
class Ignored:
    """A signal that changed nothing, and why: nobody waits for the answer to a signal."""

    what: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Carried:
    """Everything but the arguments that never change."""

    incident: Incident | None = None
    unheard: tuple[Message, ...] = ()
    steps: tuple[str, ...] = ()
    asked: Ask | None = None
    ignored: tuple[Ignored, ...] = ()
    told: tuple[str, ...] = ()
