"""One moment of one incident under one policy: the facts that guards and plans ask for.

Only readings of facts; what follows from them is the ladder's business. Values are computed once
and kept, since one decision asks for many of them several times.
"""

from datetime import datetime

from fleet.fault import FaultName
from fleet.incident import Attempt, Incident
from fleet.order import Order, Verb
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import NEEDS_APPROVAL, QUEUED, UNMANAGED
from fleet.report import Report
from fleet.sighting import Sighting
from fleet.step import REPAIRS, Step
from policies.ladder import DISRUPTS, On
from policies.once import once
from policies.reading import read_outcome
from policies.schema import Policy

SERVING = (Step.GIVE_BACK, Step.IDLE)
"""Steps that serve a stage and do not move the ladder."""
EMPTY = (Step.REBOOT, Step.REPLACE)
"""Repairs before which the whole node is emptied."""
TRIED = (OutcomeKind.SUCCEEDED, OutcomeKind.PERMANENT, OutcomeKind.AMBIGUOUS)
"""Outcomes by which a repair counts as tried: it happened, or it may have, or it cannot."""
_TOLD = (On.PASSED, On.STANDS)


class Scene:
    """What `decide` looks at. `now` is the decision's moment."""

    def __init__(self, policy: Policy, incident: Incident, now: datetime) -> None:
        self.policy = policy
        self.incident = incident
        self.now = now
        self.limits = policy.limits

    @once
    def cursor(self) -> Attempt | None:
        """The attempt that says where on the ladder we are: the last that moved it.

        A boot that we did not order is one of them, recorded after whatever ran meanwhile.
        """
        moving = (each for each in reversed(self.incident.attempts) if each.step not in SERVING)
        return next(moving, None)

    @once
    def on(self) -> On:
        """How the cursor's attempt ended."""
        return read_outcome(self.cursor.step, self.cursor.outcome) if self.cursor else On.START

    @once
    def hold_started(self) -> datetime:
        """When the present hold was asked for; the opening before the first."""
        hold = self.incident.last(Step.HOLD, OutcomeKind.SUCCEEDED)
        return hold.started if hold else self.incident.opened

    @once
    def standing(self) -> tuple[Sighting, ...]:
        """Faults that stand and that the policy holds a node for.

        One that may not recover by itself stands until something was repaired.
        """
        ours = [each for each in self.incident.sightings if self.concerns(each.fault.name)]
        return tuple([each for each in ours if each.cleared is None or self._stays(each)])

    def _stays(self, sighting: Sighting) -> bool:
        lasting = not self.policy.fault(sighting.fault.name).may_recover
        return lasting and not self._mended(sighting)

    def _mended(self, sighting: Sighting) -> bool:
        return any(each >= sighting.since for each in self.mended)

    @once
    def mended(self) -> tuple[datetime, ...]:
        """When the repairs that succeeded were begun."""
        done = OutcomeKind.SUCCEEDED
        return tuple([each.started for each in self.repairs if each.outcome.kind is done])

    @property
    def dry(self) -> bool:
        """Whether this incident only rehearses."""
        return self.incident.opening.dry

    def concerns(self, name: FaultName) -> bool:
        """Whether a fault is this incident's: held by policy, and in dry run if this is one."""
        terms = self.policy.fault(name)
        return terms.hold and (self.policy.dry_run or terms.dry_run) is self.dry

    @once
    def answers(self) -> bool:
        """Whether the node's kubelet does not stand accused of silence: the later word counts."""
        silent = FaultName.HOST_UNREACHABLE
        if all(each.fault.name is not silent for each in self.standing):
            return True
        verify, report = self.verify, self.incident.report
        return verify is not None and report is not None and verify.ended > report.observed

    @once
    def idle_at(self) -> datetime | None:
        """When no Pod used the node's GPUs under this hold: none has come since.

        A drain that made way for a reboot has emptied the node, too; one for a reset spares Pods.
        """
        done = [e for e in self.incident.attempts if e.outcome.kind is OutcomeKind.SUCCEEDED]
        seen = [
            each.ended
            for each in done
            if each.step is Step.IDLE
            or (each.step is Step.DRAIN and each.request.makes_way_for in EMPTY)
            if each.started >= self.hold_started
        ]
        return seen[0] if seen else None

    @once
    def recalled(self) -> Outcome | None:
        """What the last recall that read everything has found."""
        recall = self.incident.last(Step.RECALL, OutcomeKind.SUCCEEDED)
        return recall.outcome if recall else None

    @once
    def accused(self) -> tuple[Sighting, ...]:
        """Standing faults that may drive repairs: not those that our check looked for in vain."""
        verify = self.verify
        if verify is None or self.confirmed_at is None or not self.answers:
            return self.standing
        seen = tuple(e for e in self.standing if e.proven or e.since > verify.started)
        return seen or self.standing

    def says_healthy(self, report: Report | None) -> bool:
        """Whether a report is a witness of this boot and node, and says that nothing is wrong."""
        if report is None or report.unknown or not report.witness:
            return False
        if report.boot_id != self.incident.boot_id or report.node.uid != self.incident.node.uid:
            return False
        return not any(self.concerns(each.name) for each in report.faults)

    @once
    def report_healthy(self) -> bool:
        """Whether the latest report says so."""
        return self.says_healthy(self.incident.report)

    @once
    def healthy(self) -> bool:
        """Positively healthy: the report says so, and no check of ours says otherwise."""
        return self.report_healthy and not self.standing

    @once
    def verify(self) -> Attempt | None:
        """The last verify that could tell."""
        for each in reversed(self.incident.attempts):
            step = each.request.step
            if step is Step.VERIFY and read_outcome(step, each.outcome) in _TOLD:
                return each
        return None

    @once
    def accusing(self) -> Attempt | None:
        """The last verify that could tell, if it saw a fault."""
        verify = self.verify
        saw = verify and read_outcome(Step.VERIFY, verify.outcome) is On.STANDS
        return verify if saw else None

    @once
    def confirmed_at(self) -> datetime | None:
        """When a check of our own last saw the fault under this hold, with no repair since."""
        verify = self.accusing
        if verify is None or verify.started < self.hold_started:
            return None
        return None if self.mended and verify.started < max(self.mended) else verify.ended

    @once
    def repairs(self) -> tuple[Attempt, ...]:
        """Repairs that count as tried, whoever did them: also one that failed too often, and not
        one that waits for a person's word before it begins.
        """
        asked = [each for each in self.incident.attempts if each.request.step in REPAIRS]
        if not asked:
            return ()
        tried = [each for each in asked if not _persons(each)]
        vain = [each.step for each in tried if each.outcome.kind is OutcomeKind.TRANSIENT]
        given_up = {each for each in vain if vain.count(each) >= self.limits.step_tries}
        return tuple(e for e in tried if e.outcome.kind in TRIED or e.step in given_up)

    @once
    def repaired(self) -> bool:
        """Whether anything was tried since the node was last in service."""
        release = self.incident.last(Step.RELEASE, OutcomeKind.SUCCEEDED)
        since = release.started if release else self.incident.opened
        return any(each.started >= since for each in self.repairs)

    @once
    def recurrences(self) -> int:
        """How often the node was held again after a release of ours."""
        if self.incident.last(Step.RELEASE, OutcomeKind.SUCCEEDED) is None:
            return 0
        done = [e for e in self.incident.attempts if e.outcome.kind is OutcomeKind.SUCCEEDED]
        holds = [each.started for each in done if each.step is Step.HOLD]
        releases = [each.started for each in done if each.step is Step.RELEASE]
        return sum(max(holds, default=each) > each for each in releases)

    @once
    def released(self) -> Attempt | None:
        """The release under which the node is in service now, if it is."""
        release = self.incident.last(Step.RELEASE, OutcomeKind.SUCCEEDED)
        return release if release and release.started >= self.hold_started else None

    @once
    def in_doubt(self) -> bool:
        """Whether something of ours may still be happening on the node: then it keeps its lease."""
        return self.on is On.LOST and self.cursor is not None and self.cursor.step in DISRUPTS

    @once
    def asked(self) -> Attempt | None:
        """The last ask for a lease that was not given back since."""
        return self.incident.asked

    @once
    def leased_at(self) -> datetime | None:
        """Since when a lease is ours: not one that we may have given back, whatever was heard."""
        ask = self.asked
        if ask is None or ask.outcome.kind is not OutcomeKind.SUCCEEDED:
            return None
        since = [each for each in self.incident.attempts if each.started >= ask.started]
        paid = [each.request.step is Step.GIVE_BACK or each.request.lent for each in since]
        return None if True in paid else ask.ended

    @once
    def queued_since(self) -> datetime | None:
        """Since when an ask waits for its grant."""
        ask = self.asked
        waits = ask and ask.outcome.reason == QUEUED and not self.granted_since(ask.started)
        return ask.since if ask and waits else None

    def granted_since(self, started: datetime) -> bool:
        """Whether the budget has said yes since then: a reason to ask again, not a lease."""
        granted = self.incident.granted
        return granted is not None and granted.at >= started

    @once
    def round_at(self) -> datetime:
        """Since when the questions of now are asked: see `policies/questions.py`."""
        tried = [each.started for each in self.repairs]
        handed, orders = self.incident.handed_off, self.incident.orders
        anew = [e.at for e in orders if handed and e.verb is Verb.RESUME and e.at >= handed.at]
        return max((self.hold_started, *tried[-1:], *anew[:1]))

    def order(self, verb: Verb) -> Order | None:
        """The newest order of this kind."""
        for each in reversed(self.incident.orders):
            if each.verb is verb:
                return each
        return None

    def ordered_since(self, verb: Verb, since: datetime) -> bool:
        """Whether a person ordered this at or after a moment."""
        order = self.order(verb)
        return order is not None and order.at >= since

    @once
    def opted_out_at(self) -> datetime | None:
        """When the node was found opted out by label: by a step of ours, or by the watcher."""
        attempts = reversed(self.incident.attempts)
        found = (each.ended for each in attempts if each.outcome.reason == UNMANAGED)
        return next(found, self.incident.opted_out)

    @once
    def hold_taken_at(self) -> datetime | None:
        """When somebody took the hold away, if nobody has said resume since."""
        removed = self.incident.hold_removed
        if removed is None or removed.uid != self.incident.node.uid:
            return None
        if self.ordered_since(Verb.RESUME, removed.at) or removed.at < self.hold_started:
            return None
        return removed.at

    @once
    def paused_at(self) -> datetime | None:
        """Since when people want nothing done: by order, or by annotation on the node."""
        pause = self.order(Verb.PAUSE)
        if pause and not self.ordered_since(Verb.RESUME, pause.at):
            return pause.at
        return self.incident.annotated

    @once
    def cancelled_at(self) -> datetime | None:
        """When a person ended the incident: by order, by label, or by taking the hold for good."""
        order = self.order(Verb.CANCEL)
        if order:
            return order.at
        if self.opted_out_at:
            return self.opted_out_at
        taken = self.hold_taken_at
        if taken and self.now >= taken + self.limits.pause:
            return taken + self.limits.pause
        return None

    @once
    def gone_at(self) -> datetime | None:
        """When the Node object went, as the watcher or a step of ours saw it."""
        gone = self.incident.node_gone
        if gone and gone.concerns(self.incident.node.uid):
            return gone.at
        last = self.cursor
        if last and self.on is On.GONE and last.request.node.uid == self.incident.node.uid:
            return last.since
        return None

    @once
    def tries(self) -> int:
        """How often in a row the cursor's step ended in the same way."""
        return sum(each.tries for each in self.in_a_row)

    @once
    def in_a_row(self) -> tuple[Attempt, ...]:
        """The attempts of the cursor's step that ended in the same way, the last one first."""
        found = []
        for attempt in reversed(self.incident.attempts):
            if attempt.step in SERVING:
                continue
            if not self.cursor or attempt.step is not self.cursor.step:
                break
            if read_outcome(attempt.step, attempt.outcome) is not self.on:
                break
            found.append(attempt)
        return tuple(found)

    @once
    def agent_heard_at(self) -> datetime:
        """From when on the agent has had time to agree with a check that passed.

        The first one in a row counts, however many came after it because a fault was told anew.
        """
        return self.in_a_row[-1].ended + self.limits.unknown_wait


def _persons(attempt: Attempt) -> bool:
    """Whether a machine was left alone until a person says what it does: the ladder stops there."""
    return attempt.step in EMPTY and attempt.outcome.reason == NEEDS_APPROVAL
