"""The breaker: when so much of a scope is sick at once that the sensor is the suspect. Pure.

A doubt, not a pace: how many may be disrupted at once is the budget's. Nothing here knows nodes or
where a circuit is kept.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from policies.amounts import Pace, exceeds
from policies.budget_terms import Breaker


class Phase(StrEnum):
    """OPEN: nothing new begins. REOPENING: who was held back is let go at a pace. CLOSED: as if
    there were no circuit, but for what a person has accepted."""

    OPEN = "open"
    REOPENING = "reopening"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Count:
    """How many nodes are judged as one, and how many of them are sick."""

    size: int
    sick: int


@dataclass(frozen=True, slots=True)
class Circuit:
    """A breaker of a scope (`pool/training`) that is not simply closed.

    `turn_at` is when the next held-back nodes may be let go. `accepted` sick nodes a person has
    seen and said go on: they are set aside until the share has fallen. `opened` is when the storm
    began that opened it, whatever became of it since. `told`: people know. `by` says who closed it.
    """

    scope: str
    phase: Phase
    since: datetime
    turn_at: datetime
    accepted: int = 0
    cause: str = ""
    told: bool = False
    by: str = ""
    opened: datetime | None = None

    @property
    def untold(self) -> bool:
        """Whether a storm opened it of which nobody has been told, even if the storm is over."""
        return self.opened is not None and not self.told


def too_many(count: Count, terms: Breaker) -> bool:
    """Whether a scope's share is strictly above the limit; small scopes are exempt."""
    return count.size >= terms.min_nodes and exceeds(count.sick, count.size, terms.open_above)


def born_bad(count: Count, terms: Breaker, at_least: int) -> bool:
    """Whether so many nodes that have just been born have one fault that they were born with it.

    They are few, so no smallest scope is asked for, but more than one by chance is.
    """
    return count.sick >= at_least and exceeds(count.sick, count.size, terms.open_above)


def set_aside(count: Count, circuit: Circuit | None) -> Count:
    """The count without what a person has accepted."""
    accepted = circuit.accepted if circuit else 0
    return replace(count, sick=max(0, count.sick - accepted))


def advance(
    circuit: Circuit, *, above: bool, fallen: bool, sick: int, waiting: bool, now: datetime
) -> Circuit | None:
    """The circuit as it is from now on; None is closed, with nothing to remember.

    `above`: the share, without what was accepted, is above the limit. `fallen`: the whole share is
    not. `waiting`: somebody is still held back.
    """
    if above:
        return _opened(circuit, now)
    accepted = 0 if fallen else min(circuit.accepted, sick)
    if circuit.phase is Phase.OPEN:
        return replace(circuit, phase=Phase.REOPENING, since=now, accepted=accepted)
    if circuit.phase is Phase.REOPENING and not waiting:
        circuit = replace(circuit, phase=Phase.CLOSED, since=now)
    circuit = replace(circuit, accepted=accepted)
    # A turn that is still to come is kept, or opening again would hurry the pace.
    spent = circuit.phase is Phase.CLOSED and not accepted and now >= circuit.turn_at
    # A storm that was over before anybody was told is told of all the same.
    return None if spent and not circuit.untold else circuit


def close(circuit: Circuit, sick: int, by: str, now: datetime) -> Circuit:
    """A person says go on: what is sick now is accepted, and let go at the pace."""
    return replace(circuit, phase=Phase.REOPENING, since=now, accepted=sick, by=by, told=True)


def take_turn(circuit: Circuit, pace: Pace, now: datetime) -> Circuit | None:
    """The circuit after letting go the next `pace.count` nodes; None while it is not time."""
    if circuit.phase is not Phase.REOPENING or now < circuit.turn_at:
        return None
    return replace(circuit, turn_at=now + pace.every)


def closed(scope: str, now: datetime) -> Circuit:
    """A breaker of which nothing is known yet."""
    return Circuit(scope, Phase.CLOSED, now, now)


def _opened(circuit: Circuit, now: datetime) -> Circuit:
    if circuit.phase is Phase.OPEN:
        return circuit
    return Circuit(circuit.scope, Phase.OPEN, now, max(now, circuit.turn_at), opened=now)
