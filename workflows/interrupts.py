"""Which message stops which step while it runs: one table.

A drain harms work and can stop at any moment, so everything that takes its reason away stops it. A
reset, a reboot or a replace that has begun is never cut short: half of one is worse than all of it.
A launch is stopped by what makes a successor needless. Steps that are one or two calls are over
before anything could stop them.
"""

from collections.abc import Mapping
from enum import StrEnum

from fleet.fault import FaultName
from fleet.incident import Incident
from fleet.message import Granted, HoldRemoved, Message, NodeGone, Reported
from fleet.order import Order, Verb
from fleet.step import Step


class Interruption(StrEnum):
    """What a message means for a step that is running."""

    CANCEL = "cancel"
    RELEASE = "release"
    PAUSE = "pause"
    SKIP = "skip"
    HOLD_REMOVED = "hold removed"
    NODE_GONE = "node gone"
    RECOVERED = "recovered"
    REBOOTED = "rebooted by somebody else"
    UNREACHABLE = "the node does not answer any more"


INTERRUPTS: Mapping[Step, frozenset[Interruption]] = {
    Step.HOLD: frozenset(),
    Step.RECALL: frozenset(),
    Step.LEASE: frozenset(),
    Step.IDLE: frozenset(),
    Step.DRAIN: frozenset(Interruption),
    Step.END_JOB: frozenset(Interruption),
    Step.RESET_GPU: frozenset(),
    Step.REBOOT: frozenset(),
    Step.LAUNCH: frozenset(
        {
            Interruption.CANCEL,
            Interruption.RELEASE,
            Interruption.SKIP,
            Interruption.HOLD_REMOVED,
            Interruption.NODE_GONE,
            Interruption.RECOVERED,
        }
    ),
    Step.REPLACE: frozenset(),
    Step.VERIFY: frozenset(
        {
            Interruption.CANCEL,
            Interruption.RELEASE,
            Interruption.HOLD_REMOVED,
            Interruption.NODE_GONE,
        }
    ),
    Step.RELEASE: frozenset(),
    Step.GIVE_BACK: frozenset(),
    Step.CLOSE: frozenset(),
}

_OF_VERB: Mapping[Verb, Interruption | None] = {
    Verb.CANCEL: Interruption.CANCEL,
    Verb.RELEASE: Interruption.RELEASE,
    Verb.PAUSE: Interruption.PAUSE,
    Verb.RESUME: None,
    Verb.SKIP: Interruption.SKIP,
    Verb.APPROVE: None,
    Verb.DENY: None,
}


def interrupts(step: Step, message: Message, incident: Incident) -> bool:
    """Whether a message stops a step of this incident."""
    meaning = _meaning(message, incident)
    return meaning is not None and meaning in INTERRUPTS[step]


def _meaning(message: Message, incident: Incident) -> Interruption | None:
    match message:
        case Order(verb=verb):
            return _OF_VERB[verb]
        case HoldRemoved(uid=uid):
            return Interruption.HOLD_REMOVED if uid == incident.node.uid else None
        case NodeGone():
            return Interruption.NODE_GONE if message.concerns(incident.node.uid) else None
        case Reported():
            return _reported(message, incident)
        case Granted():
            return None


def _reported(message: Reported, incident: Incident) -> Interruption | None:
    after = incident.with_message(message)
    if after.boot_id != incident.boot_id and incident.boot_id:
        return Interruption.REBOOTED
    if after.report is not message.report:
        return None
    if message.report.clean:
        return Interruption.RECOVERED
    silent = _silent(after) and not _silent(incident)
    return Interruption.UNREACHABLE if silent else None


def _silent(incident: Incident) -> bool:
    return any(each.fault.name is FaultName.HOST_UNREACHABLE for each in incident.standing)
