"""What people are told of an incident, once for each thing: the argument of the activity `tell`.

It goes to a Kubernetes Event, which says only what everybody who lists nodes may read, and to the
notification of a person, which says it all.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.fault import Fault
from fleet.names import incident_workflow_id
from fleet.node import NodeIdentity


class Matter(StrEnum):
    """What it is about: a question, a hand-off, or a fault that policy only wants people to know.

    STORM is the breaker's: told by the watcher, of a scope and not of a node.
    """

    ASK = "ask"
    HAND_OFF = "hand-off"
    FAULT = "fault"
    STORM = "storm"


@dataclass(frozen=True, slots=True)
class Telling:
    """One thing to tell.

    `key` is equal for the same thing said again. `lines` are what is asked or needed, in words, and
    may name Pods. A question has `answers`, the `ask` that they must carry where it is one to
    approve or deny, and `until` when, after which `expiry` is done.
    """

    matter: Matter
    key: str
    incident: str
    node: NodeIdentity
    faults: tuple[Fault, ...] = ()
    lines: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    ask: str = ""
    until: datetime | None = None
    expiry: str = ""

    @property
    def workflow_id(self) -> str:
        """The run that takes the answer."""
        return incident_workflow_id(self.node.cluster, self.node.name, self.node.machine)
