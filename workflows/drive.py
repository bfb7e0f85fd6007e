"""The loop, written once: listen, decide, do it, listen again.

It knows nothing of Temporal: production gives it durable ports, the simulator virtual ones. All
judgement is in `policies.decide`; here is only the order of things.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, assert_never

from fleet.decision import Act, Ask, Close, Decision, HandOff, Wait
from fleet.incident import Incident
from fleet.message import Message
from fleet.outcome import Outcome
from fleet.question import Question
from workflows.interrupts import interrupts


class Inbox(Protocol):
    """What has arrived and was not heard yet, and the wait for more."""

    def peek(self) -> tuple[Message, ...]:
        """Look, without taking."""
        ...

    def take(self) -> tuple[Message, ...]:
        """Take everything; never waits."""
        ...

    async def wait(self, decision: Wait | Ask | HandOff, until: datetime | None) -> None:
        """Return when something is here or at `until`; None waits as long as it takes."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The five things that the loop needs from the world.

    `perform` returns how the step ended and never raises for what the world did; it stops the step
    when `stop()` is true, which changes only when something arrives.
    """

    now: Callable[[], datetime]
    inbox: Inbox
    decide: Callable[[Incident, datetime], Awaitable[Decision]]
    perform: Callable[[Act, Callable[[], bool]], Awaitable[Outcome]]
    show: Callable[[Incident, Decision], None]


async def drive(
    incident: Incident, ports: Ports, leave: Callable[[], bool] = lambda: False
) -> tuple[Incident, Close | None]:
    """Lead an incident to its end and return it with the decision that closed it.

    Between two decisions `leave` may end the loop early, with None, to go on elsewhere.
    """
    while not leave():
        incident = _hear(incident, ports.inbox)
        now = ports.now()
        decision = await ports.decide(incident, now)
        if ports.inbox.peek():
            continue  # it rests on facts that are no longer all of them
        ports.show(incident, decision)
        match decision:
            case Act():
                incident = await _perform(incident, decision, ports)
            case Wait(until=until) | Ask(until=until):
                incident = noted(incident, decision)
                await ports.inbox.wait(decision, until)
            case HandOff():
                incident = noted(incident, decision)
                await ports.inbox.wait(decision, None)
            case Close():
                return incident, decision
            case _:
                assert_never(decision)
    return incident, None


def noted(incident: Incident, decision: Decision) -> Incident:
    """What a decision itself adds to the facts: that a person was asked, and since when."""
    at = decision.basis.at
    match decision:
        case HandOff(needs=needs):
            return incident.with_hand_off(needs, at)
        case Ask(until=until, id=name, evidence=evidence) if name:
            return incident.with_question(Question(name, at, until, evidence))
        case _:
            return incident


def _hear(incident: Incident, inbox: Inbox) -> Incident:
    for message in inbox.take():
        incident = incident.with_message(message)
    return incident


async def _perform(incident: Incident, act: Act, ports: Ports) -> Incident:
    """The step is a fact before it happens; what arrives meanwhile may stop it."""
    asked = incident.with_step(act.request, ports.now())

    def stop() -> bool:
        return any(interrupts(act.request.step, each, asked) for each in ports.inbox.peek())

    outcome = await ports.perform(act, stop)
    return asked.with_outcome(outcome, ports.now())
