"""The facts of one incident so far. Whoever knows them all knows what to do next.

The stage on the ladder is not written here: `policies.decide` derives it, so that a history can be
replayed by a thin loop and re-judged by another policy. An incident only ever grows, by the small
pure methods below; every list in it has a named limit.
"""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from fleet.message import Granted, HoldRemoved, Message, NodeGone, Reported
from fleet.node import NodeIdentity
from fleet.opening import Opening
from fleet.order import Order
from fleet.outcome import Outcome, OutcomeKind, PastAttempt
from fleet.question import Question
from fleet.reason import HOLD_REMOVED, MARK_REMOVED
from fleet.report import Report
from fleet.request import StepRequest
from fleet.sighting import Sighting, Span, in_service, prove, see
from fleet.step import REPAIRS, Step

MAX_ATTEMPTS = 100
"""Attempts kept, repeats of one outcome counted as one; `decide` hands off long before."""
MAX_ORDERS = 50
MAX_ANNOTATIONS = 50
MAX_QUESTIONS = 20
"""Kept with when they were put; each round of a ladder asks a few at most."""
MAX_BOOTS = 16
MAX_FINDINGS = 32
MAX_TEXT = 500
"""Characters kept of an outcome's sentence and of a finding's evidence."""


class End(StrEnum):
    """How an incident ended. RECOVERED: nothing of ours repaired it; HANDED_OFF: a person did."""

    RECOVERED = "recovered"
    REPAIRED = "repaired"
    REPLACED = "replaced"
    HANDED_OFF = "handed-off"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A step that was asked for and how it ended.

    The same outcome of the same step in a row is one attempt with several `tries`, `since` its
    first start. `ours` is false for a boot that we did not order.
    """

    request: StepRequest
    since: datetime
    started: datetime
    ended: datetime
    outcome: Outcome
    tries: int = 1
    ours: bool = True

    @property
    def step(self) -> Step:
        """What was tried."""
        return self.request.step


@dataclass(frozen=True, slots=True)
class Running:
    """The step that is being performed now."""

    request: StepRequest
    started: datetime


@dataclass(frozen=True, slots=True)
class HandedOff:
    """Since when a person has the incident, and what they were asked for."""

    at: datetime
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Incident:
    """Everything known of one node's trouble, from its opening to now.

    `node` is the Node object as it stands (the machine never changes), `boots` the boot ids seen,
    newest last. `opted_out` is when the node was first reported opted out: for good, as a cancel.
    `annotated` is since when the node carries the pause annotation, `annotations` when it did
    before.
    `operations` counts the steps asked for and makes their ids; `digest` names this state: equal
    facts in equal order have equal digests.
    """

    opening: Opening
    opened: datetime
    node: NodeIdentity
    report: Report | None = None
    boots: tuple[str, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    running: Running | None = None
    operations: int = 0
    orders: tuple[Order, ...] = ()
    granted: Granted | None = None
    hold_removed: HoldRemoved | None = None
    node_gone: NodeGone | None = None
    handed_off: HandedOff | None = None
    questions: tuple[Question, ...] = ()
    opted_out: datetime | None = None
    annotated: datetime | None = None
    annotations: tuple[Span, ...] = ()
    digest: str = field(default="")

    @classmethod
    def open(cls, opening: Opening, now: datetime) -> "Incident":
        """An incident of which only the opening is known."""
        return cls(opening, now, opening.node)._with(opening, now)

    @property
    def boot_id(self) -> str:
        """The node's boot as last seen; empty where none was."""
        return self.boots[-1] if self.boots else ""

    def with_message(self, message: Message) -> "Incident":
        """Add what arrived; a message about another machine or an older moment changes nothing."""
        match message:
            case Reported(report, at):
                return self._with_report(report, at)
            case NodeGone():
                return self._with(message, message.at, node_gone=message)
            case HoldRemoved():
                return self._with_hold_removed(message)
            case Granted():
                return self._with(message, message.at, granted=message)
            case Order():
                orders = (*self.orders, message)[-MAX_ORDERS:]
                return self._with(message, message.at, orders=orders)

    def with_step(self, request: StepRequest, now: datetime) -> "Incident":
        """A step is asked for: it is a fact before it happens."""
        return self._with(
            request, now, running=Running(request, now), operations=self.operations + 1
        )

    def with_outcome(self, outcome: Outcome, now: datetime) -> "Incident":
        """The step that was running has ended."""
        assert self.running, "an outcome belongs to a step that was asked for"
        request, started = self.running.request, self.running.started
        outcome = _bounded(outcome)
        attempts = _added(self.attempts, Attempt(request, started, started, now, outcome))
        after = self._with(outcome, now, attempts=attempts, running=None)
        after = after._noticing(request, outcome, now)
        if request.step is Step.VERIFY:
            proven = prove(after.sightings, outcome, after.report, Span(started, now))
            after = replace(after, sightings=proven)
        if request.step is Step.RELEASE and outcome.kind is OutcomeKind.SUCCEEDED:
            after = replace(after, sightings=in_service(after.sightings))
        return after._renamed(outcome)._booted(outcome.boot_id, now, ordered=request)

    def _renamed(self, outcome: Outcome) -> "Incident":
        """The same machine was found under a new Node object (another machine is SUPERSEDED)."""
        known = outcome.uid in ("", self.node.uid)
        if known or outcome.kind is not OutcomeKind.CANCELLED:
            return self
        return replace(self, node=replace(self.node, uid=outcome.uid), node_gone=None)

    def with_hand_off(self, needs: tuple[str, ...], now: datetime) -> "Incident":
        """A person is asked to take over; only a person's order ends that."""
        if self.handed_off and not any(each.at >= self.handed_off.at for each in self.orders):
            return self
        return self._with(needs, now, handed_off=HandedOff(now, needs))

    def with_question(self, question: Question) -> "Incident":
        """A question is put to people; put again, it is the same one with its first times."""
        if any(each.id == question.id for each in self.questions):
            return self
        questions = (*self.questions, question)[-MAX_QUESTIONS:]
        return self._with(question, question.at, questions=questions)

    def _with_report(self, report: Report, now: datetime) -> "Incident":
        if self._outdated(report):
            return self
        first = self.opening.mark.opened if self.report is None else now
        booted = self._booted(report.boot_id, now, ordered=self._reboot_in_question())
        gone = self.node_gone
        back = report.node.uid != self.node.uid or (gone is not None and not gone.uid)
        return booted._with(
            report.fingerprint,
            now,
            node=report.node,
            report=report,
            sightings=see(self.sightings, report, min(first, now), now),
            node_gone=None if back else self.node_gone,
            annotated=None if report.pause is None else self.annotated or now,
            annotations=self._annotations(report, now),
            opted_out=self.opted_out or (None if report.managed else now),
        )

    def _annotations(self, report: Report, now: datetime) -> tuple[Span, ...]:
        if report.pause is not None or self.annotated is None:
            return self.annotations
        return (*self.annotations, Span(self.annotated, now))[-MAX_ANNOTATIONS:]

    def _outdated(self, report: Report) -> bool:
        if report.node.machine != self.node.machine:
            return True
        if self.node_gone and self._of_before(report, self.node_gone):
            return True
        if report.boot_id in self.boots[:-1]:
            return True
        return self.report is not None and report.observed < self.report.observed

    @staticmethod
    def _of_before(report: Report, gone: NodeGone) -> bool:
        """A UID that was deleted never comes back; that a Node is missing may change any time."""
        return report.node.uid == gone.uid if gone.uid else report.observed < gone.at

    def _with_hold_removed(self, removed: HoldRemoved) -> "Incident":
        """Said again of a hold that is known to be off, it changes nothing: neither since when it
        is off nor what a person answered meanwhile."""
        known = self.hold_removed
        again = known is not None and known.uid == removed.uid and not self.held
        if known and again and (known.mark_removed or not removed.mark_removed):
            return self
        return self._with(removed, removed.at, hold_removed=removed)

    def _reboot_in_question(self) -> StepRequest | None:
        """Our reboot of the present boot, running or tried: a new boot id is then its doing."""
        if self.running and self.running.request.step is Step.REBOOT:
            return self.running.request
        tried = [each for each in self.attempts if each.step is Step.REBOOT and each.ours]
        if tried and tried[-1].request.boot_id == self.boot_id:
            return tried[-1].request
        return None

    def _booted(self, boot_id: str, now: datetime, ordered: StepRequest | None) -> "Incident":
        """Notice a new boot; one that nobody of us ordered counts as an attempt while held."""
        if not boot_id or boot_id in self.boots:
            return self
        after = replace(self, boots=(*self.boots, boot_id)[-MAX_BOOTS:])
        ours = ordered is not None and ordered.step is Step.REBOOT
        if not self.boots or ours or not self.held:
            return after
        return after._with_foreign_reboot(self.boot_id, boot_id, now)

    def _with_foreign_reboot(self, before: str, boot_id: str, now: datetime) -> "Incident":
        faults = tuple(each.fault for each in self.standing)
        request = StepRequest(
            operation="",
            step=Step.REBOOT,
            incident=self.opening.mark.id,
            node=self.node,
            boot_id=before,
            deadline=now,
            faults=faults,
        )
        outcome = Outcome(OutcomeKind.SUCCEEDED, "", "somebody else rebooted it", boot_id)
        attempt = Attempt(request, now, now, now, outcome, ours=False)
        return replace(self, attempts=_added(self.attempts, attempt))

    @property
    def reborn(self) -> bool:
        """Whether this Node object is a new one of the machine, and was never held by us."""
        before = self.last(Step.HOLD, OutcomeKind.SUCCEEDED)
        return before is not None and before.request.node.uid != self.node.uid

    def _noticing(self, request: StepRequest, outcome: Outcome, now: datetime) -> "Incident":
        """A step that found our hold gone tells what the watcher will tell, only sooner."""
        if outcome.reason not in (HOLD_REMOVED, MARK_REMOVED) or self._not_yet_held(request):
            return self
        removed = HoldRemoved(self.node.uid, outcome.reason == MARK_REMOVED, now)
        return self._with_hold_removed(removed)

    def _not_yet_held(self, request: StepRequest) -> bool:
        """A hold was asked for on a new Node object, which the watcher has yet to hold."""
        return self.reborn and request.step is Step.HOLD

    @property
    def standing(self) -> tuple[Sighting, ...]:
        """Faults that were seen and not positively seen to be gone."""
        return tuple(each for each in self.sightings if each.cleared is None)

    @property
    def held(self) -> bool:
        """Whether our hold is on this Node object, as far as we know."""
        hold = self.last(Step.HOLD, OutcomeKind.SUCCEEDED)
        if hold is None or hold.request.node.uid != self.node.uid:
            return False
        release = self.last(Step.RELEASE, OutcomeKind.SUCCEEDED)
        if release and release.started >= hold.started:
            return False
        removed = self.hold_removed
        return not (removed and removed.uid == self.node.uid and removed.at >= hold.started)

    def last(self, step: Step, kind: OutcomeKind | None = None) -> Attempt | None:
        """The newest attempt at a step, of one kind of outcome if given."""
        for attempt in reversed(self.attempts):
            if attempt.request.step is step and kind in (None, attempt.outcome.kind):
                return attempt
        return None

    @property
    def gave_back(self) -> Attempt | None:
        """The newest attempt that gave a lease back: a give-back, or a release that did it, too."""
        for attempt in reversed(self.attempts):
            pays = attempt.request.step is Step.GIVE_BACK
            done = pays and attempt.outcome.kind is OutcomeKind.SUCCEEDED
            if done or attempt.outcome.gave_back:
                return attempt
        return None

    @property
    def asked(self) -> Attempt | None:
        """The last ask for a lease that was not given back since."""
        ask, back = self.last(Step.LEASE), self.gave_back
        return None if ask is None or (back and back.started >= ask.started) else ask

    @property
    def repairs(self) -> tuple[PastAttempt, ...]:
        """What later incidents of this machine must remember: what happened, or may have."""
        may_have = (OutcomeKind.SUCCEEDED, OutcomeKind.PERMANENT, OutcomeKind.AMBIGUOUS)
        tried = (e for e in self.attempts if e.step in REPAIRS and e.outcome.kind in may_have)
        return tuple(PastAttempt(each.step, each.started, each.request.parts) for each in tried)

    def _with(self, fact: object, now: datetime, **changes: object) -> "Incident":
        text = f"{self.digest}\n{now.isoformat()}\n{fact!r}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return replace(self, digest=digest, **changes)  # type: ignore[arg-type]


def _added(attempts: tuple[Attempt, ...], new: Attempt) -> tuple[Attempt, ...]:
    """Add an attempt; the same end of the same step again is one attempt with one more try."""
    kept = list(attempts)
    if kept and _repeats(kept[-1], new):
        last = kept.pop()
        new = replace(new, since=last.since, tries=last.tries + 1)
    if len(kept) >= MAX_ATTEMPTS:
        oldest = (n for n, each in enumerate(kept) if each.step not in REPAIRS)
        kept.pop(next(oldest, 0))
    return (*kept, new)


def _repeats(last: Attempt, new: Attempt) -> bool:
    if new.request.operation and new.request.operation == last.request.operation:
        return True
    if last.step is not new.step or OutcomeKind.SUCCEEDED in (last.outcome.kind, new.outcome.kind):
        return False
    if new.step in REPAIRS:
        return False
    return (last.outcome.kind, last.outcome.reason) == (new.outcome.kind, new.outcome.reason)


def _bounded(outcome: Outcome) -> Outcome:
    findings = tuple(
        replace(each, evidence=each.evidence[:MAX_TEXT]) for each in outcome.findings[:MAX_FINDINGS]
    )
    return replace(outcome, detail=outcome.detail[:MAX_TEXT], findings=findings)
