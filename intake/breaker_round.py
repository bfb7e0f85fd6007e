"""One look at every breaker: which open, which may close, and whose turn it is. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from intake.breaker_record import CloseOrder
from intake.muster import Ward
from policies.breaker import (
    Circuit,
    Count,
    Phase,
    advance,
    born_bad,
    close,
    closed,
    set_aside,
    take_turn,
    too_many,
)
from policies.budget_terms import Breaker

Waiting = Callable[[Ward], Sequence[str]]
"""Who of a ward is held back and has not had a turn, worst first."""


@dataclass(frozen=True, slots=True)
class Judging:
    """By what breakers open: the policy's terms, and how many births with one fault are no chance
    any more."""

    terms: Breaker
    births: int

    def above(self, ward: Ward, count: Count) -> bool:
        """Whether this many of the ward are too many."""
        if ward.fault:
            return born_bad(count, self.terms, self.births)
        return too_many(count, self.terms)

    def why(self, ward: Ward) -> str:
        """Why its breaker is open, in numbers."""
        limit, count = self.terms.open_above, ward.count
        what = f"nodes just born have {ward.fault}" if ward.fault else "nodes are sick"
        return f"{count.sick} of {count.size} {what}, more than {limit} of {ward.scope}"


@dataclass(frozen=True, slots=True)
class Round:
    """The circuits that are worth remembering, and who is let go now, by circuit."""

    circuits: Mapping[str, Circuit]
    turns: Mapping[str, tuple[str, ...]]


def go_round(
    circuits: Mapping[str, Circuit],
    orders: Mapping[str, CloseOrder],
    wards: Mapping[str, Ward],
    waiting: Waiting,
    judging: Judging,
    now: datetime,
) -> Round:
    """Judge every ward once; `orders` are people's words to close."""
    after: dict[str, Circuit] = {}
    turns: dict[str, tuple[str, ...]] = {}
    for key, ward in wards.items():
        held_back = waiting(ward)
        circuit = _judge(circuits.get(key), orders.get(key), ward, bool(held_back), judging, now)
        turn = circuit and take_turn(circuit, judging.terms.reopen, now)
        if turn and held_back:
            circuit, turns[key] = turn, tuple(held_back[: judging.terms.reopen.count])
        if circuit:
            after[key] = circuit
    return Round(after, turns)


def _judge(
    known: Circuit | None,
    order: CloseOrder | None,
    ward: Ward,
    waiting: bool,
    judging: Judging,
    now: datetime,
) -> Circuit | None:
    circuit = known or closed(ward.scope, now)
    if order and circuit.phase is Phase.OPEN:
        circuit = close(circuit, ward.count.sick, str(order), now)
    after = advance(
        circuit,
        above=judging.above(ward, set_aside(ward.count, circuit)),
        fallen=not judging.above(ward, ward.count),
        sick=ward.count.sick,
        waiting=waiting,
        now=now,
    )
    opened = after is not None and after.phase is Phase.OPEN and circuit.phase is not Phase.OPEN
    return replace(after, cause=judging.why(ward)) if after and opened else after
