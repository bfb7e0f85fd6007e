"""What people send to an incident: an update for each verb, and the answers as signals, too.

Every message carries one JSON object, `{"actor": ..., "reason": ..., "ask": ...}`, read here and
not by the converter: what cannot be read is refused in words, and no signal of whatever shape may
stop a run. What an order may do is `workflows/operators.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows import operators

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.decision import Ask, Decision
    from fleet.incident import Incident
    from fleet.message import Message
    from fleet.order import ANSWERS, EXAMPLE, EXAMPLE_ANSWER, Order, Said, Verb, read_said
    from fleet.step import Step
    from policies.carried import Ignored

MOST_IGNORED = 8
"""Signals that changed nothing, as shown on the card; the history has them all."""
MOST_CHARACTERS = 300
"""Of the words kept of one of them."""


class Hearing:
    """Reads what people send, and puts it on record or says why not."""

    def __init__(self, unheard: Sequence[Message], ignored: Sequence[Ignored]) -> None:
        self.unheard = list(unheard)
        self.ignored = list(ignored)

    def heard(self) -> Incident:
        """The incident with everything that has arrived."""
        raise NotImplementedError

    def at(self) -> Decision | None:
        """The decision that is being carried out; None before the first."""
        raise NotImplementedError

    def skippable(self) -> Step | str:
        """What a skip would leave out now, or why there is nothing to skip."""
        raise NotImplementedError

    def show_again(self) -> None:
        """Bring the card up to date."""
        raise NotImplementedError

    def take_order(self, verb: Verb, given: Sequence[object]) -> str:
        """Put an order that the validator let through on record; the loop hears it next."""
        said = read_said(given)
        order = Order(verb, said.actor, said.reason, workflow.now(), said.ask)
        if verb in ANSWERS:
            order = replace(order, evidence=self._evidence(said.ask))
        if verb is Verb.SKIP:
            left_out = self.skippable()
            order = replace(order, skips=left_out if isinstance(left_out, Step) else None)
        self.unheard.append(order)
        return f"{verb}: taken" + (f", {order.skips} is left out" if order.skips else "")

    def _evidence(self, ask: str) -> str:
        at = self.at()
        return at.evidence if isinstance(at, Ask) and at.id == ask else ""

    def refuse_order(self, verb: Verb, given: Sequence[object]) -> None:
        """Raise what the sender is told, if there is anything against the order."""
        try:
            why = self._why_not(verb, read_said(given))
        except ValueError as problem:
            why = str(problem)
        if why:
            raise ApplicationError(why, type="OrderRefused", non_retryable=True)

    def take_answer(self, verb: Verb, given: Sequence[object]) -> None:
        """Take a signal as the update of the same name, or note why it changes nothing."""
        try:
            said = read_said(given)
        except ValueError as problem:
            self.ignore(f"signal {verb}", str(problem))
            return
        why = self._why_not(verb, said)
        if why:
            self.ignore(f"signal {verb} by {said.actor or 'nobody'}", why)
            return
        self.take_order(verb, [said])

    def ignore(self, what: str, why: str) -> None:
        """Note a signal that changed nothing."""
        what, why = what[:MOST_CHARACTERS], why[:MOST_CHARACTERS]
        self.ignored = [*self.ignored, Ignored(what, why, workflow.now())][-MOST_IGNORED:]
        self.show_again()

    def _why_not(self, verb: Verb, said: Said) -> str | None:
        why = operators.refusal(verb, said, self.heard(), self.at())
        if why or verb is not Verb.SKIP:
            return why
        left_out = self.skippable()
        return None if isinstance(left_out, Step) else left_out


def _update(verb: Verb, meaning: str) -> Callable[..., Any]:
    example = EXAMPLE_ANSWER if verb in (Verb.APPROVE, Verb.DENY) else EXAMPLE

    @workflow.update(name=verb.value, description=f"{meaning}. Input: {example}")
    def take(self: Hearing, *given: Any) -> str:
        return self.take_order(verb, given)

    @take.validator
    def refuse(self: Hearing, *given: Any) -> None:
        self.refuse_order(verb, given)

    return take


def _answer(name: str, verb: Verb) -> Callable[..., None]:
    @workflow.signal(name=name, description=f"{verb} the question. Input: {EXAMPLE_ANSWER}")
    def take(self: Hearing, *given: Any) -> None:
        self.take_answer(verb, given)

    return take


class People(Hearing):
    """The part of an incident's workflow that hears people: the handlers by name."""

    pause = _update(Verb.PAUSE, "Do nothing more until resumed")
    resume = _update(Verb.RESUME, "Go on after a pause or a hand-off")
    skip = _update(Verb.SKIP, "Leave out the step that is waited for or comes next")
    cancel = _update(Verb.CANCEL, "End it: undo the hold, repair nothing")
    release = _update(Verb.RELEASE, "Give the node back on your word")
    approve = _update(Verb.APPROVE, "Say yes to the pending question")
    deny = _update(Verb.DENY, "Say no to the pending question")
    approve_signal = _answer(names.SIGNAL_APPROVE, Verb.APPROVE)
    deny_signal = _answer(names.SIGNAL_DENY, Verb.DENY)


Handler = TypeVar("Handler", bound=Callable[..., None])


def fitting(handler: Handler) -> Handler:
    """A signal whose arguments do not fit is noted and changes nothing: it must not stop the run.

    People can send any signal from the Temporal UI, and a signal cannot be refused.
    """
    shape = signature(handler)

    @wraps(handler)
    def handle(self: Hearing, *given: Any) -> None:
        try:
            shape.bind(self, *given)
        except TypeError as problem:
            self.ignore(f"signal {handler.__name__}", str(problem))
            return
        handler(self, *given)

    return cast("Handler", handle)
