"""A Kubernetes Event about a Node: what it says, and the name that says it once. Pure.

An Event is read by everybody who may list nodes, so it never carries Pod names, serial numbers or
what a log said; who writes it is `event_writer`, and what there is to say `step_events`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from fleet.fault import Fault
from fleet.instant import format_instant
from fleet.names import DOMAIN, MARK_ANNOTATION
from fleet.node import NodeIdentity
from fleet.ports import Json

COMPONENT = "gpumend"
NAMESPACE = "default"
"""Where the Events of what has no namespace live."""
MESSAGE_LIMIT = 1_000
"""Characters; the API server takes 1,024."""
FAULTS_NAMED = 4
LONGEST_NAME = 253
STEP, END, OPERATION = (f"{DOMAIN}/{each}" for each in ("step", "end", "operation"))

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")


class EventType(StrEnum):
    """WARNING: somebody may have to look."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """One thing to say about a node.

    `same` is what makes two of one incident the same Event, which is said once while it stands;
    `operation` is what it tells of.
    """

    node: NodeIdentity
    incident: str
    reason: str
    message: str
    operation: str
    same: tuple[str, ...] = ()
    type: EventType = EventType.NORMAL
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Equal for the same thing, so that a repeat makes no second object."""
        facts = "\n".join((self.incident, self.reason, *self.same))
        digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
        return f"{self.node.name[: LONGEST_NAME - 17].rstrip('-.')}.{digest}"


EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"


def manifest_of(event: NodeEvent, now: datetime) -> Json:
    """The Event as it is said for the first time."""
    at = format_instant(now.replace(microsecond=0))
    marks = {MARK_ANNOTATION: event.incident, OPERATION: event.operation, **event.annotations}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": NAMESPACE, "annotations": marks},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": event.node.name,
            "uid": event.node.uid,
        },
        "reason": event.reason,
        "message": event.message[:MESSAGE_LIMIT],
        "type": event.type.value,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def name_faults(faults: Sequence[Fault]) -> str:
    """`uncontained-memory on gpu:3 (xid:95)`, a few of them."""
    said = [f"{each.name} on {each.part} ({each.code})" for each in faults[:FAULTS_NAMED]]
    more = len(faults) - FAULTS_NAMED
    return ", ".join(said) + (f" and {more} more" if more > 0 else "")


def code_of(reason: str) -> str:
    """A code that may stand in an Event: one word; anything else is left out."""
    return reason if _CODE.fullmatch(reason) else ""
