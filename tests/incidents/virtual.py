"""A world in virtual time for `drive`: one node, its truth, a script, and a transcript.

Nothing sleeps: time jumps to what happens next, so months pass in milliseconds.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from fleet.decision import Act, Ask, Close, Decision, HandOff, Wait
from fleet.fault import Advice, Fault, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.incident import Incident
from fleet.mark import Mark, MarkState
from fleet.message import Message, Reported
from fleet.node import NodeIdentity
from fleet.opening import Opening
from fleet.outcome import Outcome, OutcomeKind
from fleet.part import parse_part
from fleet.reason import INTERRUPTED
from fleet.report import Report
from fleet.step import Means, Step
from policies.decide import decide
from policies.rehearsal import READS, rehearse, without_rehearsed
from policies.schema import Policy
from workflows.drive import Ports, drive, noted

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
IDLE_LIMIT = timedelta(days=60)
"""A scenario in which nothing happens for so long is over: it waits for a person."""
LONG = {
    Step.DRAIN: 120,
    Step.RESET_GPU: 20,
    Step.REBOOT: 300,
    Step.LAUNCH: 240,
    Step.REPLACE: 120,
    Step.VERIFY: 10,
}
"""Seconds that a step takes where the script says nothing; others take one."""

Happening = Callable[["World"], Message | None]


def a_fault(part: str, name: str, code: str = "xid:95", advice: str = "none") -> Fault:
    return Fault(parse_part(part), FaultName(name), code, Advice(advice), 1, START)


def an_opening(uid: str = "u1", node: str = "n1") -> Opening:
    identity = NodeIdentity("c1", node, uid, "m1")
    mark = Mark("m1-20261129120000", "m1", uid, MarkState.PENDING, START)
    return Opening(identity, mark, {"cluster": "c1"})


@dataclass
class Script:
    """How one try of a step ends, after how many seconds, and whether it heals."""

    outcome: Outcome
    seconds: int | None = None
    heals: bool = False


class Over(Exception):
    """Nothing is left to happen."""


@dataclass
class World:
    policy: Policy
    faults: tuple[Fault, ...]
    phantoms: tuple[Fault, ...] = ()
    now: datetime = START
    boot: str = "b1"
    node: NodeIdentity = field(default_factory=lambda: an_opening().node)
    witness: bool = True
    busy: bool = True
    recanted: bool = False
    means: tuple[Means, ...] = (Means.INSIDE,)
    managed: bool = True
    pause: str | None = None
    dry: bool = False
    unknown: tuple[str, ...] = ()
    scripts: dict[Step, deque[Script]] = field(default_factory=lambda: defaultdict(deque))
    timeline: list[tuple[datetime, Happening]] = field(default_factory=list)
    arrived: list[Message] = field(default_factory=list)
    transcript: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    performed: list[Act] = field(default_factory=list)
    incident: Incident | None = None

    def at(self, seconds: float, happening: Happening) -> None:
        self.timeline.append((START + timedelta(seconds=seconds), happening))
        self.timeline.sort(key=lambda each: each[0])

    def soon(self, seconds: float, happening: Happening) -> None:
        self.at((self.now - START).total_seconds() + seconds, happening)

    def report(self) -> Reported:
        said = () if self.recanted else (*self.faults, *self.phantoms)
        known = (self.now, self.witness, self.managed, self.pause)
        return Reported(Report(self.node, self.boot, said, self.unknown, *known), self.now)

    def say(self, text: str) -> None:
        at = self.now - START
        days, rest = divmod(int(at.total_seconds()), 86_400)
        clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
        self.transcript.append(f"{f'{days}d ' if days else ''}{clock} {text}")

    # The ports.

    def peek(self) -> tuple[Message, ...]:
        return tuple(self.arrived)

    def take(self) -> tuple[Message, ...]:
        taken, self.arrived = tuple(self.arrived), []
        return taken

    async def wait(self, decision: Wait | Ask | HandOff, until: datetime | None) -> None:
        assert self.incident, "only an incident that was decided about waits"
        self.incident = noted(self.incident, decision)
        limit = until or self.now + IDLE_LIMIT
        while not self.arrived and self.now < limit:
            self._advance(limit)
        if until is None and not self.arrived:
            raise Over

    def _advance(self, limit: datetime) -> None:
        if self.timeline and self.timeline[0][0] <= limit:
            at, happening = self.timeline.pop(0)
            self.now = max(self.now, at)
            message = happening(self)
            if message:
                self.arrived.append(message)
        else:
            self.now = limit

    async def decide(self, incident: Incident, now: datetime) -> Decision:
        self.incident = incident
        assert len(self.decisions) < 1000, "\n".join(self.transcript[-40:])
        self.decisions.append(decide(self.policy, incident, now))
        return self.decisions[-1]

    def show(self, incident: Incident, decision: Decision) -> None:
        match decision:
            case Act():
                pass
            case Wait(stage, until, reasons):
                self.say(f"wait in {stage} until {_clock(until)}: {reasons[0]}")
            case Ask(question, answers, until):
                self.say(f"ask until {_clock(until)}: {question} ({' or '.join(answers)})")
            case HandOff(needs):
                self.say(f"hand-off: {'; '.join(needs)}")
            case Close(end):
                self.say(f"end: {end}")

    async def perform(self, act: Act, stop: Callable[[], bool]) -> Outcome:
        if self.dry and act.request.step not in READS:
            outcome = rehearse(act.request)
            self.say(f"{act.request.step}: {_words(outcome)} ({outcome.detail})")
            return outcome
        self.performed.append(act)
        step = act.request.step
        script = self._script(step)
        seconds = LONG.get(step, 1) if script.seconds is None else script.seconds
        ends = self.now + timedelta(seconds=seconds)
        while self.now < ends:
            self._advance(ends)
            if stop():
                self.say(f"{step}: stopped")
                return Outcome(OutcomeKind.CANCELLED, INTERRUPTED, boot_id=self.boot)
        outcome = self._happened(act, script)
        self.say(f"{step}: {_words(outcome)}")
        return without_rehearsed(self.policy, outcome)

    @property
    def unreachable(self) -> bool:
        return any(each.name is FaultName.HOST_UNREACHABLE for each in self.faults)

    def _script(self, step: Step) -> Script:
        if self.scripts[step]:
            return self.scripts[step].popleft()
        return Script(Outcome(OutcomeKind.SUCCEEDED))

    def _happened(self, act: Act, script: Script) -> Outcome:
        step = act.request.step
        if script.heals:
            self.faults = ()
        if step is Step.REBOOT and script.outcome.kind is OutcomeKind.SUCCEEDED:
            self.boot = f"b{int(self.boot[1:]) + 1}"
            self.soon(15, World.report)
        back = act.request.lent and script.outcome.kind is OutcomeKind.SUCCEEDED
        boot = script.outcome.boot_id or self.boot
        outcome = replace(script.outcome, boot_id=boot, gave_back=back)
        if step is Step.RECALL and outcome.kind is OutcomeKind.SUCCEEDED:
            return replace(outcome, means=self.means)
        if step is Step.IDLE and self.busy:
            return replace(outcome, kind=OutcomeKind.TRANSIENT, reason="in-use")
        if step is Step.VERIFY and self.unreachable:
            return replace(outcome, kind=OutcomeKind.TRANSIENT, reason="unverified")
        if step is Step.VERIFY and outcome.kind is OutcomeKind.SUCCEEDED and not outcome.findings:
            found = tuple(finding(each) for each in self.faults)
            if found:
                return replace(outcome, kind=OutcomeKind.PERMANENT, findings=found)
            self.soon(5, World.report)
        return outcome


def finding(fault: Fault) -> Finding:
    return Finding(
        "kernel-log",
        fault.part,
        Verdict.FAULT,
        fault.name,
        fault.code,
        fault.advice,
        Severity.FATAL,
    )


def play(world: World) -> World:
    """Run an incident in the world from its first report until it ends or waits for a person."""
    opening = Opening(world.node, an_opening().mark, {"cluster": "c1"}, world.dry)
    world.arrived.append(world.report())
    ports = Ports(lambda: world.now, world, world.decide, world.perform, world.show)
    course = drive(Incident.open(opening, world.now), ports)
    try:
        course.send(None)
    except StopIteration as done:
        world.incident = done.value[0]
    except Over:
        pass
    return world


def _clock(until: datetime) -> str:
    days, rest = divmod(int((until - START).total_seconds()), 86_400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{f'{days}d ' if days else ''}{clock}"


def _words(outcome: Outcome) -> str:
    found = ", ".join(f"{each.fault} on {each.part}" for each in outcome.findings if each.fault)
    back = "and gave the lease back" if outcome.gave_back else ""
    return " ".join(each for each in (outcome.kind, outcome.reason, found, back) if each)
