"""What a check says of a part, in three values. Unknown is a value, never a truth."""

from dataclasses import dataclass
from enum import Enum

from fleet.fault import Advice, FaultName, Severity
from fleet.part import Part


class Verdict(Enum):
    """Ok, fault or unknown: deliberately without order and without truthiness."""

    OK = "ok"
    FAULT = "fault"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a verdict has three values: compare it with `is`")


WORST_FIRST = (Verdict.FAULT, Verdict.UNKNOWN, Verdict.OK)
"""How findings are listed, since verdicts have no order of their own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check about one part.

    `fault` is set exactly when the verdict is FAULT. `evidence` is bounded text for the pod log and
    Temporal history, never for conditions. `pods` are the UIDs of those whose work was hit, where
    that can be told (`fleet.pod`). `value` is what was measured, in the check's own unit; 0 where
    nothing was.
    """

    check: str
    part: Part
    verdict: Verdict
    fault: FaultName | None = None
    code: str = ""
    advice: Advice = Advice.NONE
    severity: Severity = Severity.INFO
    evidence: str = ""
    pods: tuple[str, ...] = ()
    value: float = 0.0

    def __post_init__(self) -> None:
        if (self.verdict is Verdict.FAULT) != (self.fault is not None):
            raise ValueError(f"{self.check}: a fault needs a name, and only a fault has one")
