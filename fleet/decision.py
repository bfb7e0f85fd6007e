"""What `decide` answers: one of five, each with its reasons and with what it rested on.

Only results are kept in a history, so a decision repeats its basis: an audit can be read from
decisions alone, and re-run against another policy.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from fleet.incident import End
from fleet.request import StepRequest
from fleet.step import Step


@dataclass(frozen=True, slots=True)
class Basis:
    """The moment of a decision, the facts that mattered (for people), and digests of all of them.

    `incident` is `Incident.digest`, `policy` the policy's own. `outlook` is what comes next after
    this, for people.
    """

    at: datetime
    facts: tuple[str, ...]
    incident: str
    policy: str
    outlook: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Act:
    """Perform a step."""

    request: StepRequest
    reasons: tuple[str, ...]
    basis: Basis
    kind: Literal["act"] = "act"


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until `until` or until something arrives; `stage` is what is waited in."""

    stage: Step
    until: datetime
    reasons: tuple[str, ...]
    basis: Basis
    kind: Literal["wait"] = "wait"


@dataclass(frozen=True, slots=True)
class Ask:
    """Do nothing until a person gives one of `answers`; `expiry` says what no answer means.

    `id` names this question where it is one that is approved or denied: the same facts ask the same
    question under the same id, and an answer must carry it. `evidence` is a digest of what the
    person is shown, and is recorded with the answer.
    """

    question: str
    answers: tuple[str, ...]
    until: datetime
    expiry: str
    reasons: tuple[str, ...]
    basis: Basis
    id: str = ""
    evidence: str = ""
    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True)
class HandOff:
    """A person must take over; `needs` says exactly what is needed. The incident stays open."""

    needs: tuple[str, ...]
    reasons: tuple[str, ...]
    basis: Basis
    kind: Literal["hand-off"] = "hand-off"


@dataclass(frozen=True, slots=True)
class Close:
    """Nothing is left to do."""

    end: End
    reasons: tuple[str, ...]
    basis: Basis
    kind: Literal["close"] = "close"


Decision = Act | Wait | Ask | HandOff | Close
