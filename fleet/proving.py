"""What a run that proves a node is told, and how it ends.

The checks that prove one are policy; how they are run is `workflows/prove.py`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.fault import FaultName
from fleet.node import NodeIdentity
from fleet.proof import Why


class ProofEnd(StrEnum):
    """How a proof ended. PROVEN: every check passed, and the taint is off. FOUND: a check found a
    fault. UNKNOWN: nobody could tell. STOPPED: its premise went away (work, an incident, a boot, a
    person). NO_ROOM: the disruption budget lends nothing now.
    """

    PROVEN = "proven"
    FOUND = "found"
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    NO_ROOM = "no-room"


OPERATIONS = "prove-"
"""Begins the name of every operation of a proof."""


@dataclass(frozen=True, slots=True)
class ProveTask:
    """One node to prove, in the boot in which it was seen to need it."""

    node: NodeIdentity
    boot_id: str
    why: Why


@dataclass(frozen=True, slots=True)
class ProveRequest:
    """One step of a proof, asked for at `since`. `operation` names it in Pods and Events; `end` is,
    for the last one, how the proof went. `harmless` are the faults that policy holds no node for.
    """

    operation: str
    task: ProveTask
    since: datetime
    deadline: datetime
    checks: tuple[str, ...] = ()
    end: ProofEnd = ProofEnd.UNKNOWN
    harmless: tuple[FaultName, ...] = ()


@dataclass(frozen=True, slots=True)
class ProofClosing:
    """What a run leaves: how it ended, and why in sentences."""

    end: ProofEnd
    reasons: tuple[str, ...] = ()
