"""Outcomes read as the ladder's words: above all, whether a verify says healthy, sick or neither.

Only positive evidence passes, and only a finding accuses; all else is unclear.
"""

from collections.abc import Mapping

from fleet.finding import Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.step import Step
from policies.ladder import On

_BY_KIND: Mapping[OutcomeKind, On] = {
    OutcomeKind.SUCCEEDED: On.DONE,
    OutcomeKind.TRANSIENT: On.LATER,
    OutcomeKind.PERMANENT: On.FAILED,
    OutcomeKind.AMBIGUOUS: On.LOST,
    OutcomeKind.CANCELLED: On.STOPPED,
    OutcomeKind.SUPERSEDED: On.GONE,
}


def read_outcome(step: Step, outcome: Outcome) -> On:
    """How a step ended, in the ladder's words."""
    if step is Step.VERIFY:
        return _read_verify(outcome)
    return _BY_KIND[outcome.kind]


def _read_verify(outcome: Outcome) -> On:
    if outcome.kind in (OutcomeKind.CANCELLED, OutcomeKind.SUPERSEDED):
        return _BY_KIND[outcome.kind]
    verdicts = [each.verdict for each in outcome.findings]
    if Verdict.FAULT in verdicts:
        return On.STANDS
    if Verdict.UNKNOWN in verdicts:
        return On.UNCLEAR
    return On.PASSED if outcome.kind is OutcomeKind.SUCCEEDED else On.UNCLEAR
