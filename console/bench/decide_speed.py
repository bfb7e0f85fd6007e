"""How long one decision takes: `policies.decide` at every point of a four-step incident.

The incident is driven in virtual time through the production loop; nothing of the world answers.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.resources import files

from fleet.decision import Act, Ask, Decision, HandOff, Wait
from fleet.fault import Advice, Fault, FaultName
from fleet.finding import Finding, Verdict
from fleet.incident import Incident
from fleet.mark import Mark, MarkState
from fleet.message import Message, Reported
from fleet.node import NodeIdentity
from fleet.opening import Opening
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import Part
from fleet.report import Report
from fleet.step import Step
from policies.decide import decide
from policies.document import load
from workflows.drive import Ports, drive

ROWS, REPEATED = 25, 10
BEGAN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NODE = NodeIdentity("bench", "n1", "u1", "0a1b2c3d")
FAULT = Fault(
    part=Part("gpu:3"),
    name=FaultName.UNCONTAINED_MEMORY,
    code="xid:95",
    advice=Advice.RESET_GPU,
    count=1,
    since=BEGAN,
)
POLICY = load((files("policies") / "default.yaml").read_text(encoding="utf-8"), "default.yaml")


class Course:
    """A machine whose fault a reset does not heal and a reboot does; `points` are decided on."""

    def __init__(self) -> None:
        self.now = BEGAN
        self.boot = "b1"
        self.points: list[tuple[Incident, datetime]] = []
        self.steps: list[Step] = []
        self._unheard: list[Message] = []

    def run(self) -> None:
        """From the hold to the close."""
        mark = Mark("0a1b2c3d-20261129120000", "0a1b2c3d", "u1", MarkState.PENDING, BEGAN)
        opening = Opening(NODE, mark, {})
        self._report((FAULT,))
        ports = Ports(lambda: self.now, self, self._decide, self._perform, lambda *_: None)
        asyncio.run(drive(Incident.open(opening, self.now), ports))

    def peek(self) -> tuple[Message, ...]:
        """What has arrived."""
        return tuple(self._unheard)

    def take(self) -> tuple[Message, ...]:
        """The same, taken."""
        taken, self._unheard = tuple(self._unheard), []
        return taken

    async def wait(self, decision: Wait | Ask | HandOff, until: datetime | None) -> None:
        """Time is virtual."""
        if until is None or len(self.points) > 1000:
            raise RuntimeError(f"the course of the bench does not end: {decision}")
        self.now = until

    async def _decide(self, incident: Incident, now: datetime) -> Decision:
        self.points.append((incident, now))
        return decide(POLICY, incident, now)

    async def _perform(self, act: Act, stop: Callable[[], bool]) -> Outcome:
        step = act.request.step
        self.steps.append(step)
        self.now += timedelta(seconds=30)
        healed = self.boot != "b1"
        if step is Step.REBOOT:
            self.boot = "b2"
            self._report(())
        if step is Step.VERIFY and not healed:
            seen = Finding("memory", FAULT.part, Verdict.FAULT, FAULT.name, FAULT.code)
            return Outcome(OutcomeKind.PERMANENT, boot_id=self.boot, findings=(seen,))
        return Outcome(OutcomeKind.SUCCEEDED, boot_id=self.boot)

    def _report(self, faults: tuple[Fault, ...]) -> None:
        self._unheard.append(Reported(Report(NODE, self.boot, faults, (), self.now), self.now))


def measure() -> tuple[float, float, int]:
    """Microseconds on a core of a decision: the mean of a course and the dearest; of how many."""
    course = Course()
    course.run()
    took = [_seconds(incident, now) for incident, now in course.points]
    return statistics.mean(took) * 1e6, max(took) * 1e6, len(took)


def _seconds(incident: Incident, now: datetime) -> float:
    """Of several rows of decisions the fastest: other processes slow one, none speeds it up."""
    took = []
    for _ in range(ROWS):
        began = time.process_time()
        for _ in range(REPEATED):
            decide(POLICY, incident, now)
        took.append((time.process_time() - began) / REPEATED)
    return min(took)
