"""How an attempt to change the world ended. A cancelled drain is not a drained node."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from fleet.finding import Finding
from fleet.part import Part
from fleet.step import Means, Step


class OutcomeKind(StrEnum):
    """What may be concluded.

    SUCCEEDED: done and seen to be done. TRANSIENT: not done, may work later. PERMANENT: not done,
    repeating will not help. AMBIGUOUS: may have happened; look (boot id, instance state) before
    anything else. CANCELLED: stopped on purpose, or its premise was gone before it acted.
    SUPERSEDED: this node is no longer the one that the incident is about.
    """

    SUCCEEDED = "succeeded"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    AMBIGUOUS = "ambiguous"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """A repair that was tried on this machine, as later incidents remember it.

    `parts` is what it was about; a reboot is about the whole machine whatever it says.
    """

    step: Step
    at: datetime
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The typed end of one step.

    `reason` is a code of `fleet.reason` where it decides something, `detail` one sentence for
    people. `boot_id` and `uid` are the node's as last seen, `findings` what a verify found, `past`
    what a recall read (only a SUCCEEDED recall has read everything), `means` by what
    a recall found this node to be repairable; `gave_back` that a release gave the lease back, too.
    """

    kind: OutcomeKind
    reason: str = ""
    detail: str = ""
    boot_id: str = ""
    uid: str = ""
    findings: tuple[Finding, ...] = field(default=())
    past: tuple[PastAttempt, ...] = field(default=())
    means: tuple[Means, ...] = field(default=())
    gave_back: bool = False
