"""Activities that change a truth in memory instead of a node, by the names of the real ones."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowHandle

from fleet.fault import Fault
from fleet.outcome import Outcome, OutcomeKind
from fleet.reason import INTERRUPTED
from fleet.report import Report
from fleet.request import StepRequest
from fleet.step import REPAIRS, Means, Step
from fleet.telling import Telling
from policies.lease_terms import LeaseTerms
from tests.incidents.virtual import an_opening, finding

DONE = Outcome(OutcomeKind.SUCCEEDED)
KNOWN = Outcome(OutcomeKind.SUCCEEDED, means=(Means.INSIDE,))


@dataclass
class Truth:
    """One node: what is wrong with it, and what the steps are scripted to do."""

    faults: tuple[Fault, ...]
    boot: str = "b1"
    heals: tuple[Step, ...] = ()
    tell: Callable[[Report], Any] | None = None
    scripts: dict[Step, deque[Outcome]] = field(default_factory=lambda: defaultdict(deque))
    performed: list[StepRequest] = field(default_factory=list)
    away: set[Step] = field(default_factory=set)
    told: list[Telling] = field(default_factory=list)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    drained: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.drained.set()

    def report(self) -> Report:
        return Report(an_opening().node, self.boot, self.faults, (), datetime.now(UTC))

    def steps(self) -> list[str]:
        return [each.step.value for each in self.performed]

    async def perform(self, request: StepRequest) -> Outcome:
        self.performed.append(request)
        if request.step in self.away and activity.info().is_local:
            raise ConnectionError("the API server does not answer")
        outcome = DONE
        if request.step is Step.RECALL:
            outcome = KNOWN
        if self.scripts[request.step]:
            outcome = self.scripts[request.step].popleft()
        if request.step in self.heals and outcome.kind is OutcomeKind.SUCCEEDED:
            self.faults = ()
        if request.step is Step.REBOOT:
            self.boot = f"b{int(self.boot[1:]) + 1}"
        if request.step is Step.VERIFY and outcome is DONE and self.faults:
            outcome = Outcome(OutcomeKind.PERMANENT, findings=tuple(map(finding, self.faults)))
        if request.step in (Step.VERIFY, Step.REBOOT, Step.CLOSE):  # a node that changes is news
            await self.say()
        back = request.lent and outcome.kind is OutcomeKind.SUCCEEDED
        return replace(outcome, boot_id=outcome.boot_id or self.boot, gave_back=back)

    async def say(self) -> None:
        if self.tell:
            await self.tell(self.report())


class FakeActivities:
    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def steps(self) -> Sequence[Callable[..., Any]]:
        simple = (Step.HOLD, Step.RECALL, Step.IDLE, Step.VERIFY, Step.RELEASE, Step.CLOSE)
        plain = [self._activity(each) for each in (*simple, *REPAIRS)]
        return [*plain, self.drain]

    def lending(self) -> Sequence[Callable[..., Any]]:
        return [self.lease, self.give_back]

    @activity.defn(name="tell")
    async def hear(self, telling: Telling) -> bool:
        self.truth.told.append(telling)
        return True

    def _activity(self, step: Step) -> Callable[..., Any]:
        @activity.defn(name=step.value)
        async def run(request: StepRequest) -> Outcome:
            return await self.truth.perform(request)

        return run

    @activity.defn(name="lease")
    async def lease(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        assert terms.budgets
        return await self.truth.perform(request)

    @activity.defn(name="give-back")
    async def give_back(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        assert terms.budgets
        return await self.truth.perform(request)

    @activity.defn(name="drain")
    async def drain(self, request: StepRequest) -> Outcome:
        self.truth.draining.set()
        try:
            while not self.truth.drained.is_set():
                activity.heartbeat("waiting for pods")
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return Outcome(OutcomeKind.CANCELLED, INTERRUPTED, boot_id=self.truth.boot)
        return await self.truth.perform(request)


def teller(handle: WorkflowHandle[Any, Any]) -> Callable[[Report], Any]:
    async def tell(report: Report) -> None:
        await handle.signal("report", report)

    return tell
