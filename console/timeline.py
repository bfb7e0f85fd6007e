"""One timeline of a node, from the first evidence to now: what was seen, decided, done and said.

Two sources tell it: the history of the incident's run, and the cluster. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from activities.adapters.temporal_history import (
    Asked,
    Began,
    Decided,
    Done,
    Ended,
    Heard,
    Over,
    Told,
    Unread,
)
from console.decision_words import comes, why
from console.node_facts import NodeFacts
from console.table import clock, length
from fleet.decision import Act, Decision, Wait
from fleet.fault import Fault
from fleet.finding import Finding, Verdict
from fleet.message import Granted, HoldRemoved, Message, NodeGone, Reported
from fleet.order import Order
from fleet.outcome import Outcome
from fleet.report import Report
from fleet.step import Step


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened; `times` counts equal ones in a row, `last` is the last of them.

    `like` tells equal ones where their texts differ by a time only.
    """

    at: datetime
    what: str
    text: str
    reasons: tuple[str, ...] = ()
    times: int = 1
    last: datetime | None = None
    like: str = ""


def timeline(told: Sequence[Told], node: NodeFacts | None) -> tuple[Entry, ...]:
    """Everything in the order in which it happened."""
    entries = [*_Story().tell(told)]
    if node:
        entries += _of_cluster(node, entries)
    ordered = sorted(entries, key=lambda each: each.at)
    return tuple(_collapsed(ordered))


class _Story:
    """Remembers what was said before, so that only news are told."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()
        self._report: Report | None = None
        self._asked: dict[Step, datetime] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}

    def tell(self, told: Sequence[Told]) -> Iterable[Entry]:
        for each in told:
            yield from self._one(each)

    def _one(self, told: Told) -> Iterable[Entry]:
        match told:
            case Began(at, opening, again):
                if not again:
                    mark = opening.mark
                    yield Entry(mark.opened, "held", f"incident {mark.id}; no new work lands here")
                    yield Entry(at, "opened", f"workflow {opening.workflow_id}")
            case Heard(at, message):
                yield from self._heard(at, message)
            case Decided(at, decision):
                yield from self._decided(at, decision)
            case Asked(at, request):
                self._asked[request.step] = at
                text = f"begins, until {clock(request.deadline)} at the latest"
                yield Entry(at, request.step, text, self._reasons.get(request.operation, ()))
            case Done(at, request, outcome):
                said = outcome.detail or outcome.reason
                text = f"{outcome.kind}" + (f": {said}" if said else "")
                yield Entry(at, request.step, text, self._reasons.get(request.operation, ()))
            case Ended(at, step, outcome, failure):
                yield self._ended(at, step, outcome, failure)
            case Over(at, how, closing):
                text = f"{how}: {closing.end}" if closing else how
                yield Entry(at, "over", text, closing.reasons if closing else ())
            case Unread(at, what):
                yield Entry(at, "unread", what)

    def _decided(self, at: datetime, decision: Decision) -> Iterable[Entry]:
        if isinstance(decision, Act):
            self._reasons[decision.request.operation] = decision.reasons
        else:
            like = decision.stage if isinstance(decision, Wait) else decision.kind
            yield Entry(at, "decided", comes(decision), why(decision), like=like)

    def _heard(self, at: datetime, message: Message) -> Iterable[Entry]:
        match message:
            case Reported(report):
                yield from self._reported(at, report)
            case NodeGone():
                yield Entry(at, "node", "the Node object is gone")
            case HoldRemoved(mark_removed=mark):
                yield Entry(at, "node", f"somebody took our hold{' and mark' * mark} away")
            case Granted():
                yield Entry(at, "budget", "a lease may be fetched")
            case Order(verb, actor, reason, _, ask):
                answers = f" (answers {ask})" if ask else ""
                yield Entry(at, "order", f"{verb} by {actor}: {reason}{answers}")

    def _reported(self, at: datetime, report: Report) -> Iterable[Entry]:
        keys = frozenset(each.key for each in report.faults)
        for fault in report.faults:
            if fault.key not in self._known:
                yield Entry(min(at, fault.since), "evidence", fault_words(fault))
        before, self._report, self._known = self._report, report, keys
        if before and before.boot_id != report.boot_id:
            yield Entry(at, "node", "another boot")
        if report.clean and (before is None or not before.clean):
            yield Entry(at, "report", "the node reports healthy")
        if report.unknown and (before is None or before.unknown != report.unknown):
            first, *rest = report.unknown
            more = f"; and {len(rest)} more" if rest else ""
            yield Entry(at, "report", f"unknown: {first}{more}")

    def _ended(self, at: datetime, step: Step, outcome: Outcome | None, failure: str) -> Entry:
        took = length(at - self._asked.get(step, at))
        if outcome is None:
            return Entry(at, step, f"failed after {took}: {failure}")
        said = outcome.detail or outcome.reason
        text = f"{outcome.kind} after {took}" + (f": {said}" if said else "")
        return Entry(at, step, text, tuple(_findings(outcome.findings)))


def _findings(findings: Sequence[Finding]) -> Iterable[str]:
    """What was found wrong or could not be told, each with the checks that say so."""
    witnesses: dict[str, list[str]] = {}
    for each in findings:
        if each.verdict is not Verdict.OK:
            what = f"{each.part} {each.fault or each.verdict.value}"
            witnesses.setdefault(what, []).append(f"{each.check} {each.code}".rstrip())
    return (f"{what}, by {', '.join(by)}" for what, by in witnesses.items())


def fault_words(fault: Fault) -> str:
    """A fault as every reader of the node may know it."""
    advice = f", asks for {fault.advice}" if fault.advice != "none" else ""
    return f"{fault.name} on {fault.part} ({fault.code}{advice})"


def _of_cluster(node: NodeFacts, told: Sequence[Entry]) -> list[Entry]:
    """What the cluster adds to the run's own story."""
    known = {(each.what, each.text) for each in told}
    entries = [Entry(each.since, "evidence", fault_words(each)) for each in node.faults]
    mark = node.state.mark
    if mark and not any(each.what == "held" for each in told):
        entries.append(Entry(mark.opened, "held", f"incident {mark.id} ({mark.state})"))
    if not told:  # while the run can be read, it tells the same and more
        entries += [
            Entry(each.at, "event", f"{each.reason}: {each.message}", times=each.count)
            for each in node.events
        ]
    return [each for each in entries if (each.what, each.text) not in known]


def _collapsed(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Equal entries in a row are one: who waits is asked again and again."""
    last: Entry | None = None
    for each in entries:
        if last and _same(last, each):
            last = replace(last, text=each.text, times=last.times + each.times, last=each.at)
            continue
        if last:
            yield last
        last = each
    if last:
        yield last


def _same(one: Entry, other: Entry) -> bool:
    if (one.what, one.reasons) != (other.what, other.reasons):
        return False
    return one.like == other.like if one.like else one.text == other.text
