"""The workflow of one incident: the durable ports of `drive`, and nothing of its judgement.

Id `node/<cluster>/<name>/<machine>`; started by the watcher together with signal `report`. It ends
when the node is in service again, is gone, or people took it over.

Timers are of the decisions it waits in; activities are its steps. State is in `@workflow.init`,
since messages are handled before `run` begins. It goes on as a new run before its history grows
too long, with the incident and what was not heard yet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import FailureError

from workflows import counting, drive, performing
from workflows.card import answers, card_of, headline, in_short
from workflows.people import People, fitting
from workflows.telling import Teller
from workflows.timing import DECIDE_RETRY, DECIDE_TIMEOUT

with workflow.unsafe.imports_passed_through():
    from activities import search_attributes as keys
    from fleet import names
    from fleet.closing import Closing
    from fleet.decision import Act, Ask, Decision, HandOff, Wait
    from fleet.incident import Incident
    from fleet.message import Granted, HoldRemoved, Message, NodeGone, Reported
    from fleet.opening import Opening
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.report import Report
    from fleet.step import REPAIRS, Step
    from policies.carried import Carried
    from policies.decide import decide
    from policies.engine_fault import without_decision
    from policies.ladder import Ending
    from policies.lease_terms import LeaseTerms
    from policies.rehearsal import READS, rehearse, without_rehearsed
    from policies.scene import Scene
    from policies.schema import Policy
    from policies.skipping import skippable


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of the query `plan`: what comes next by the facts as they are.

    `answers` are the commands by which a person answers it, where one is waited for.
    """

    next: Decision
    in_words: str
    facts_observed: datetime | None
    since_decision: Decision | None
    answers: tuple[str, ...] = ()


@workflow.defn(name=names.INCIDENT_WORKFLOW)
class NodeRemediation(People):
    """One node's trouble, from its hold to its end."""

    @workflow.init
    def __init__(self, opening: Opening, policy: Policy, carried: Carried | None) -> None:
        carried = carried or Carried()
        super().__init__(carried.unheard, carried.ignored)
        self._policy = policy
        self._incident = carried.incident or Incident.open(opening, workflow.now())
        self._dry = opening.dry
        self._steps = list(carried.steps) or [keys.DRY_RUN] * opening.dry
        self._teller = Teller(carried.told)
        self._decision: Decision | None = carried.asked
        self._shown = _shown_by(workflow.info().typed_search_attributes)

    @workflow.run
    async def run(self, opening: Opening, policy: Policy, carried: Carried | None) -> Closing:
        """Drive the incident to its end; `carried` is None in the first run."""
        ports = drive.Ports(workflow.now, self, self._decide, self._perform, self._show)
        incident, close = await drive.drive(self._incident, ports, leave=self._must_move)
        if close is None:
            assert workflow.all_handlers_finished(), "handlers here never wait"
            workflow.continue_as_new(args=[opening, policy, self._carried(incident)])
        if not opening.dry:
            counting.count_ended(incident, close)
        repairs = () if opening.dry else incident.repairs
        return Closing(close.end, close.reasons, repairs, opening.dry)

    def _carried(self, incident: Incident) -> Carried:
        asked = self._decision if isinstance(self._decision, Ask) else None
        unheard, ignored = tuple(self.unheard), tuple(self.ignored)
        steps, told = tuple(self._steps), self._teller.told
        return Carried(incident, unheard, steps, asked, ignored, told)

    # Machine messages.

    @workflow.signal(name=names.SIGNAL_REPORT, description="What is wrong with the node, wholly")
    @fitting
    def report(self, report: Report) -> None:
        """Take in a complete report of the node."""
        self.unheard.append(Reported(report, workflow.now()))

    @workflow.signal(name=names.SIGNAL_NODE_GONE, description="The Node object was deleted")
    @fitting
    def node_gone(self, uid: str) -> None:
        """Take in that the Node object with this UID is gone."""
        self.unheard.append(NodeGone(uid, workflow.now()))

    @workflow.signal(name=names.SIGNAL_HOLD_REMOVED, description="Somebody took our hold away")
    @fitting
    def hold_removed(self, uid: str, mark_removed: bool) -> None:
        """Take in that our taint, and perhaps our mark, are gone."""
        self.unheard.append(HoldRemoved(uid, mark_removed, workflow.now()))

    @workflow.signal(name=names.SIGNAL_GRANT, description="The disruption budget says yes")
    @fitting
    def grant(self) -> None:
        """Take in that a lease is there to be fetched."""
        self.unheard.append(Granted(workflow.now()))

    @workflow.query(name=names.QUERY_PLAN, description="What comes next, and what blocks it")
    def plan(self, now: datetime | None = None) -> Plan:
        """Decide once more on the facts as they are, at `now` or when something last happened."""
        incident = self.heard()
        observed = incident.report.observed if incident.report else None
        comes = decide(self._policy, incident, now or workflow.now())
        said = answers(incident, comes)
        return Plan(comes, headline(comes), observed, self._decision, said)

    # What `People` needs of it.

    def heard(self) -> Incident:
        """The incident with everything that has arrived."""
        incident = self._incident
        for message in self.unheard:
            incident = incident.with_message(message)
        return incident

    def at(self) -> Decision | None:
        """The decision that is being carried out; after a new run's start the question before."""
        return self._decision

    def skippable(self) -> Step | str:
        """What a skip would leave out now, or why there is nothing to skip."""
        return skippable(Scene(self._policy, self.heard(), workflow.now()), self._decision)

    def show_again(self) -> None:
        """Bring the card up to date with what was ignored."""
        if self._decision:
            workflow.set_current_details(card_of(self._incident, self._decision, self.ignored))

    # The ports of `drive`.

    def peek(self) -> tuple[Message, ...]:
        """What has arrived and was not heard yet."""
        return tuple(self.unheard)

    def take(self) -> tuple[Message, ...]:
        """The same, taken."""
        taken, self.unheard = tuple(self.unheard), []
        return taken

    async def wait(self, decision: Wait | Ask | HandOff, until: datetime | None) -> None:
        """Sleep durably until something arrives or the time is there."""
        self._incident = drive.noted(self._incident, decision)
        if not self._dry:
            self._teller.tell(decision, self._incident)
        if until is None:
            await workflow.wait_condition(lambda: bool(self.unheard))
            return
        left = max(until - workflow.now(), timedelta(0))
        try:
            await workflow.wait_condition(
                lambda: bool(self.unheard), timeout=left, timeout_summary=self._summary(decision)
            )
        except TimeoutError:
            return

    def _summary(self, decision: Decision) -> str:
        """What the timeline shows of a wait, within the 200 bytes that the server takes."""
        words = ("dry run: " if self._dry else "") + in_short(decision)
        return words.encode()[:190].decode(errors="ignore")

    async def _decide(self, incident: Incident, now: datetime) -> Decision:
        """Ask the pure function, on record; an engine that cannot decide asks for a person."""
        self._incident = incident
        try:
            decision: Decision = await workflow.execute_local_activity(
                "decide",
                args=[self._policy, incident, now],
                result_type=ANSWER,
                start_to_close_timeout=DECIDE_TIMEOUT,
                retry_policy=DECIDE_RETRY,
                summary="what comes next",
            )
        except FailureError as failure:  # a local activity fails with its own error, unwrapped
            return without_decision(self._policy, incident, now, str(failure))
        return decision

    async def _perform(self, act: Act, stop: Callable[[], bool]) -> Outcome:
        if self._dry and act.request.step not in READS:
            return rehearse(act.request)
        outcome = await self._performed(act, stop)
        return without_rehearsed(self._policy, outcome)

    async def _performed(self, act: Act, stop: Callable[[], bool]) -> Outcome:
        """By its activity; what is only rehearsed counts in no figure."""
        incident = self._incident
        terms: tuple[LeaseTerms, ...] = ()
        if act.request.step in (Step.LEASE, Step.GIVE_BACK):
            faults = [each.name for each in act.request.faults]
            terms = (LeaseTerms.of(self._policy, incident.opened, faults),)
        released = incident.last(Step.RELEASE, OutcomeKind.SUCCEEDED) is not None
        if self._dry:
            return await performing.perform(act, terms, stop, released)
        counting.count_begun(incident)
        outcome = await performing.perform(act, terms, stop, released)
        counting.count_step(incident, act.request, outcome, workflow.now())
        return outcome

    def _show(self, incident: Incident, decision: Decision) -> None:
        """The card is free; search attributes cost an event and change with the stage only.

        A repair is over when it was looked at, so its time includes that of a verify.
        """
        self._decision = decision
        self.show_again()
        stage, due = _stage_of(decision, left=self._shown[0])
        if due and stage in REPAIRS:
            due += self._policy.limits.verify
        fault = self._worst(incident)
        if not stage or (stage, fault) == self._shown:
            return
        self._shown = (stage, fault)
        if stage not in self._steps:
            self._steps.append(stage)
        workflow.upsert_search_attributes(
            [
                keys.STEP.value_set(stage),
                keys.STEPS.value_set(self._steps),
                keys.FAULT.value_set(fault) if fault else keys.FAULT.value_unset(),
                keys.DUE_AT.value_set(due) if due else keys.DUE_AT.value_unset(),
            ]
        )

    def _worst(self, incident: Incident) -> str:
        """The first fault that stands and that this incident is about."""
        faults = (each.fault.name for each in incident.standing)
        ours = (each for each in faults if self._policy.rehearsed(each) is self._dry)
        return next((each.value for each in ours), "")

    def _must_move(self) -> bool:
        return workflow.info().is_continue_as_new_suggested()


ANSWER = cast("type", Decision)
"""A union is a type to the converter, though not to the SDK's signature."""

SILENT = (
    *(Step.HOLD, Step.RECALL, Step.IDLE, Step.LEASE, Step.GIVE_BACK),
    *(Step.VERIFY, Step.RELEASE, Step.CLOSE),
)
"""Steps that are no stage of a list: over in moments, or part of the stage that they serve.

A wait in one of them (for a grant, for a check's next try) is a stage all the same.
"""
WITH_PEOPLE = (Step.HAND_OFF.value, Ending.ASK.value)
"""Stages that end with whatever step comes next, silent or not.

Who looks at leases reads there that people have the node, and would take a lease from who goes on.
"""


def _shown_by(attributes: TypedSearchAttributes) -> tuple[str, str]:
    """The stage and the fault that the list shows already: of the start, or of the run before."""
    return attributes.get(keys.STEP, ""), attributes.get(keys.FAULT, "")


def _stage_of(decision: Decision, left: str) -> tuple[str, datetime | None]:
    """The word for the list of incidents, and when it is due; empty for what has no word.

    `left` is the stage that the list shows until now.
    """
    match decision:
        case Act(request):
            silent = request.step in SILENT and left not in WITH_PEOPLE
            return ("" if silent else request.step.value), request.deadline
        case Wait(stage, until):
            return stage.value, until
        case Ask(until=until):
            return Ending.ASK.value, until
        case HandOff():
            return Step.HAND_OFF.value, None
        case _:
            return "", None
