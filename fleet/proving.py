"""What a run that proves a node is told, and how it ends.

The checks that prove one are policy; how they are run is `workflows/prove.py`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.fault import FaultName
from fleet.finding import Finding
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
    for the last one, how the proof went. `harmless` are the faults that policy holds no node for,
    `word` what a trial in pairs says that the node has.
    """

    operation: str
    task: ProveTask
    since: datetime
    deadline: datetime
    checks: tuple[str, ...] = ()
    end: ProofEnd = ProofEnd.UNKNOWN
    harmless: tuple[FaultName, ...] = ()
    word: Finding | None = None


@dataclass(frozen=True, slots=True)
class PairRequest:
    """Two nodes that are to add up together, side 0 first. `operation` names the pair and, with its
    side behind it, each of its two Pods; they meet at `port`, and may add up for `seconds`.
    """

    operation: str
    sides: tuple[ProveTask, ProveTask]
    since: datetime
    deadline: datetime
    port: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialWord:
    """What a trial in pairs tells the run that keeps a node for it: how that node came out and why.

    `finding` is set where it is the odd one (end FOUND).
    """

    end: ProofEnd
    because: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class ProofClosing:
    """What a run leaves: how it ended, and why in sentences."""

    end: ProofEnd
    reasons: tuple[str, ...] = ()
