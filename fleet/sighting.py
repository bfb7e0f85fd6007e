"""When a fault was first seen, and when it was positively seen to be gone.

The engine keeps its own clock for each: transition times of conditions are reset by whoever writes
them. Absence alone ends nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from fleet.fault import Fault
from fleet.finding import Finding, Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import HOST
from fleet.pod import hit
from fleet.report import Report

MAX_SIGHTINGS = 128


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fault with its times: `first` ever in this incident, `since` in its present spell.

    `cleared` is None while it stands. `proven` says that a check of our own saw it: then a report
    without it does not end it, only a passed verify does. Whom it hit in this spell stays known.
    """

    fault: Fault
    first: datetime
    since: datetime
    cleared: datetime | None = None
    proven: bool = False

    @property
    def key(self) -> str:
        """The fault's key: part and name."""
        return self.fault.key


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when something ran."""

    started: datetime
    ended: datetime


def see(
    sightings: tuple[Sighting, ...], report: Report, first: datetime, now: datetime
) -> tuple[Sighting, ...]:
    """Add a report. `first` is the time that a fault gets which was never seen before."""
    known = {each.key: each for each in sightings}
    seen = {each.key: each for each in report.faults}
    for key, fault in seen.items():
        known[key] = _stands(known.get(key), fault, first, now)
    if report.witness and not report.unknown:
        for key, each in known.items():
            if key not in seen and each.cleared is None and not each.proven:
                known[key] = replace(each, cleared=now)
    return _bounded(known.values())


def prove(
    sightings: tuple[Sighting, ...], outcome: Outcome, latest: Report | None, times: Span
) -> tuple[Sighting, ...]:
    """Add a verify: what it found is proven; what it looked for and found no more is not.

    Such a fault ends, unless the latest report still has it: then two witnesses disagree. Where the
    verify could not tell of a part, or of the host, nothing ends there.
    """
    known = {each.key: each for each in sightings}
    found = [each for each in outcome.findings if each.verdict is Verdict.FAULT]
    for finding in found:
        fault = _fault_of(finding, known, times.ended)
        stands = _stands(known.get(fault.key), fault, times.ended, times.ended)
        known[fault.key] = replace(stands, proven=True)
    if outcome.kind is OutcomeKind.SUCCEEDED or found:
        reported = {each.key for each in latest.faults} if latest else set()
        for key in _looked_for(known, outcome, times):
            cleared = None if key in reported else times.ended
            known[key] = replace(known[key], proven=False, cleared=cleared)
    return _bounded(known.values())


def in_service(sightings: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    """The node was given back: from now on the reports alone say what has ended and come again.

    On a person's word that is with faults that a check of ours saw, and no verify follows.
    """
    return tuple(replace(each, proven=False) for each in sightings)


def _looked_for(known: dict[str, Sighting], outcome: Outcome, times: Span) -> list[str]:
    """Faults that were proven before this verify, and that it would have found again."""
    found = {f"{each.part} {each.fault}" for each in outcome.findings if each.fault}
    untold = {each.part for each in outcome.findings if each.verdict is Verdict.UNKNOWN}
    if HOST in untold:
        return []
    return [
        key
        for key, each in known.items()
        if each.proven and each.cleared is None and each.since <= times.started
        if key not in found and each.fault.part not in untold
    ]


def _stands(known: Sighting | None, fault: Fault, first: datetime, now: datetime) -> Sighting:
    if known is None:
        return Sighting(fault, first, first)
    if known.cleared is None:
        return replace(known, fault=replace(fault, pods=hit(known.fault.pods, fault.pods)))
    return Sighting(fault, known.first, now)


def _fault_of(finding: Finding, known: dict[str, Sighting], now: datetime) -> Fault:
    assert finding.fault is not None, "only a fault is proven"
    fault = Fault(
        finding.part, finding.fault, finding.code, finding.advice, 1, now, pods=finding.pods
    )
    before = known.get(fault.key)
    return before.fault if before else fault


def _bounded(sightings: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Keep what stands before what is cleared, and what is old before what is new."""
    kept = sorted(sightings, key=lambda each: (each.cleared is not None, each.first, each.key))
    return tuple(kept[:MAX_SIGHTINGS])
