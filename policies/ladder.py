"""The ladder as one table: what may follow what, on which outcome, under which guard.

A row belongs to the last step that was tried and to how it ended; its moves are read from the top
and the first whose guard holds is taken. A move that is not here is illegal, and a missing row is
our own mistake. What the guards mean is in `policies/guards.py`, how long waits last in
`policies/timers.py`; nothing here looks at a fact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fleet.step import Step


class Ending(StrEnum):
    """Where a ladder leads besides to steps: a question to people, and the end."""

    ASK = "ask"
    END = "end"


Stage = Step | Ending


class On(StrEnum):
    """How the last step ended, as far as the ladder cares."""

    START = "start"
    DONE = "done"
    PASSED = "passed"
    STANDS = "stands"
    UNCLEAR = "unclear"
    FAILED = "failed"
    LATER = "later"
    LOST = "lost"
    STOPPED = "stopped"
    GONE = "gone"


class Guard(StrEnum):
    """A condition on the facts. Those named like a state of waiting are timers (`Move.wait`)."""

    ALWAYS = "always"
    # People, and the node itself: these come before everything else.
    CLOSED = "the mark is off"
    REPLACED = "the machine was given back for another"
    WELL_AGAIN = "this was a dry run, and the node reports healthy"
    REHEARSED = "this is a dry run, and its last step was rehearsed"
    MARK_TAKEN = "somebody took the mark away"
    NODE_AWAY = "the Node object is gone and may come back"
    NODE_LOST = "the Node object is gone for good"
    CANCELLED_MARKED = "cancelled, with only the mark left"
    CANCELLED = "cancelled"
    RELEASE_ORDERED = "a person ordered the release"
    HOLD_TAKEN = "somebody took the hold away"
    PAUSED = "a person paused it"
    PAUSE_OVER = "a pause lasted too long"
    HANDED_OFF = "a person has it"
    RESUMED = "a person had it and says go on"
    OUT_OF_BOUNDS = "too many attempts in one incident"
    NOT_HELD = "our hold is not on this Node object"
    # The node's health.
    RECOVERED = "positively healthy, and nothing was repaired"
    DOUBTED = "the agent alone says healthy"
    PROVEN = "the check passed and the agent agrees"
    ANEW = "a fault came after the check"
    CLEARING = "the check passed and the agent may still agree"
    RECURRED = "a fault came back in probation"
    ON_PROBATION = "probation is not over"
    NOTHING_STANDS = "nothing is known to be wrong, and health is not shown"
    TOO_SOON = "the check passed before the agent had time to agree"
    DISPUTED = "our own check sees what the agent says is gone"
    DISPUTE_RESTS = "our own check sees what the agent says is gone: it looks again shortly"
    CONTRADICTED = "our own check goes on seeing what the agent says is gone"
    ANSWERS = "the node answers"
    # The way up.
    UNWATCHED = "whether jobs still use the GPUs was not looked at lately"
    TOLERATED = "jobs may stay a while"
    NO_WAY = "no step is left that the engine may and can do"
    UNREMEMBERED = "past attempts were not read"
    UNCONFIRMED = "no check of our own has seen the fault"
    UNAPPROVED = "the next step waits for a person's yes"
    STUCK = "the node does not become empty without a person's yes"
    FORCED = "a person said yes to forcing the drain"
    UNSEEN = "no check has looked since the last repair"
    UNLEASED = "no lease"
    UNLEASED_AGAIN = "no lease for the tries that are left"
    STALE = "our check is too old to act on"
    UNDRAINED = "the next step needs an empty node"
    UNLAUNCHED = "a successor is to be ready before the node goes"
    NEXT_IS_END_JOB = "next is end-job"
    NEXT_IS_RESET = "next is reset-gpu"
    NEXT_IS_REBOOT = "next is reboot"
    NEXT_IS_REPLACE = "next is replace"
    # Repetition.
    RESTING = "a short rest before the next try"
    TRIES_LEFT = "tries are left"
    STILL_NEXT = "tries are left, and it still comes next"
    TRIED_OUT = "no tries are left"
    QUEUED = "the ask waits for a grant"
    WAIT_LEFT = "the wait for a lease is not over"
    SETTLING = "it may still be happening"
    PERSONS = "only a person may allow it"
    ENDED_BY_PERSON = "a person ended it"


@dataclass(frozen=True, slots=True)
class Move:
    """Where to go when the guard holds; with `wait`, to stay there until the guard's time."""

    to: Stage
    when: Guard = Guard.ALWAYS
    wait: bool = False


def _go(to: Stage, when: Guard = Guard.ALWAYS) -> Move:
    return Move(to, when)


def _stay(at: Stage, when: Guard) -> Move:
    return Move(at, when, wait=True)


DISRUPTS = (Step.DRAIN, Step.LAUNCH, Step.END_JOB, Step.RESET_GPU, Step.REBOOT, Step.REPLACE)
"""Steps that take a node, or room for another, from the fleet: each needs a lease."""

FIRST: tuple[Move, ...] = (
    _go(Ending.END, Guard.CLOSED),
    _go(Ending.END, Guard.REPLACED),
    _go(Ending.END, Guard.MARK_TAKEN),
    _stay(Step.HOLD, Guard.NODE_AWAY),
    _go(Ending.END, Guard.NODE_LOST),
    _go(Ending.END, Guard.WELL_AGAIN),
    _go(Step.CLOSE, Guard.CANCELLED_MARKED),
    _go(Step.RELEASE, Guard.CANCELLED),
    _go(Step.RELEASE, Guard.RELEASE_ORDERED),
    _stay(Ending.ASK, Guard.HOLD_TAKEN),
    _stay(Ending.ASK, Guard.PAUSED),
    _go(Step.HAND_OFF, Guard.PAUSE_OVER),
    _go(Step.HAND_OFF, Guard.HANDED_OFF),
    _go(Step.VERIFY, Guard.RESUMED),
    _go(Step.HAND_OFF, Guard.OUT_OF_BOUNDS),
    _go(Step.HOLD, Guard.NOT_HELD),
)
"""Read before every row: people's orders, and a node that is not there, come first."""

_HEALED = (_go(Step.RELEASE, Guard.RECOVERED), _go(Step.VERIFY, Guard.DOUBTED))
_GIVE_UP = (_go(Step.HAND_OFF),)
_CLIMB = (
    *_HEALED,
    _stay(Step.TOLERATE, Guard.NOTHING_STANDS),
    _go(Step.IDLE, Guard.UNWATCHED),
    _stay(Step.TOLERATE, Guard.TOLERATED),
    _go(Step.HAND_OFF, Guard.NO_WAY),
    _go(Step.RECALL, Guard.UNREMEMBERED),
    _go(Step.VERIFY, Guard.UNCONFIRMED),
    _stay(Ending.ASK, Guard.UNAPPROVED),
    _go(Step.LEASE, Guard.UNLEASED),
    _go(Step.VERIFY, Guard.STALE),
    _go(Step.LAUNCH, Guard.UNLAUNCHED),
    _go(Step.DRAIN, Guard.UNDRAINED),
    _go(Step.END_JOB, Guard.NEXT_IS_END_JOB),
    _go(Step.RESET_GPU, Guard.NEXT_IS_RESET),
    _go(Step.REBOOT, Guard.NEXT_IS_REBOOT),
    _go(Step.REPLACE, Guard.NEXT_IS_REPLACE),
    *_GIVE_UP,
)


def _again(step: Step, instead: tuple[Move, ...] = _GIVE_UP) -> tuple[Move, ...]:
    """After a failure of the moment: rest, then the same again while tries are left."""
    return (_stay(step, Guard.RESTING), *_lend(step), _go(step, Guard.TRIES_LEFT), *instead)


def _lend(step: Step) -> tuple[Move, ...]:
    """What disrupts needs a lease again where a pause gave it back."""
    return (_go(Step.LEASE, Guard.UNLEASED_AGAIN),) if step in DISRUPTS else ()


def _retry(step: Step) -> tuple[Move, ...]:
    """The same of a repair: what was skipped, has healed or was overtaken meanwhile is not done."""
    return (*_HEALED, _stay(step, Guard.RESTING), _go(step, Guard.STILL_NEXT), *_CLIMB)


def _serve(step: Step) -> tuple[Move, ...]:
    """The same of what serves a repair: nothing is served where none is left."""
    nothing = (_stay(Step.TOLERATE, Guard.NOTHING_STANDS), _go(Step.HAND_OFF, Guard.NO_WAY))
    return (*_HEALED, *nothing, *_again(step))


def _stopped(step: Step, then: tuple[Move, ...] = _CLIMB) -> tuple[Move, ...]:
    """After a refusal or an interruption: rest, then see afresh what the facts ask for."""
    return (*_HEALED, _stay(step, Guard.RESTING), _go(Step.HAND_OFF, Guard.TRIED_OUT), *then)


_UNPROVEN = (_go(Step.HAND_OFF, Guard.ANSWERS), *_CLIMB)
"""Where a step on the node could not tell or not be done: a silent node goes its own way."""


def _lost(step: Step) -> tuple[Move, ...]:
    """After a repair that nobody knows the end of: let it end, then look."""
    return (_stay(step, Guard.SETTLING), _go(Step.VERIFY, Guard.ANSWERS), *_CLIMB)


_QUEUE = (
    *_HEALED,
    _go(Step.HAND_OFF, Guard.NO_WAY),
    _stay(Step.LEASE, Guard.QUEUED),
    _go(Step.LEASE, Guard.WAIT_LEFT),
    *_GIVE_UP,
)
_STUCK = (
    *_HEALED,
    _stay(Ending.ASK, Guard.STUCK),
    _go(Step.LEASE, Guard.FORCED),
)
_PROBATION = (
    _go(Step.HOLD, Guard.RECURRED),
    _stay(Step.PROBATION, Guard.ON_PROBATION),
    _go(Step.CLOSE),
)
_PROOF = (
    _go(Step.RELEASE, Guard.PROVEN),
    _go(Step.VERIFY, Guard.ANEW),
    _stay(Step.VERIFY, Guard.CLEARING),
    _go(Step.VERIFY, Guard.TOO_SOON),
    *_GIVE_UP,
)
_DISPUTE = (
    _go(Step.HAND_OFF, Guard.CONTRADICTED),
    _stay(Step.VERIFY, Guard.DISPUTE_RESTS),
    _go(Step.VERIFY, Guard.DISPUTED),
)

LADDER: Mapping[tuple[Step | None, On], tuple[Move, ...]] = {
    (None, On.START): (_go(Step.HOLD),),
    (Step.HOLD, On.DONE): (_go(Step.VERIFY, Guard.UNSEEN), *_CLIMB),
    (Step.HOLD, On.FAILED): _GIVE_UP,
    (Step.HOLD, On.LATER): _again(Step.HOLD),
    (Step.HOLD, On.LOST): _again(Step.HOLD),
    (Step.HOLD, On.STOPPED): (
        _go(Step.RELEASE, Guard.RECOVERED),
        _stay(Step.HOLD, Guard.RESTING),
        _go(Step.HAND_OFF, Guard.TRIED_OUT),
        _go(Step.HOLD),  # before anything else: a verify of what is not held would be refused
    ),
    (Step.HOLD, On.GONE): (_go(Step.HOLD),),
    (Step.RECALL, On.DONE): _CLIMB,
    (Step.RECALL, On.FAILED): _GIVE_UP,
    (Step.RECALL, On.LATER): _again(Step.RECALL),
    (Step.RECALL, On.LOST): _again(Step.RECALL),
    (Step.RECALL, On.STOPPED): _stopped(Step.RECALL),
    (Step.LEASE, On.DONE): _CLIMB,
    (Step.LEASE, On.FAILED): _GIVE_UP,
    (Step.LEASE, On.LATER): _QUEUE,
    (Step.LEASE, On.LOST): _QUEUE,
    (Step.LEASE, On.STOPPED): _stopped(Step.LEASE),
    (Step.DRAIN, On.DONE): _CLIMB,
    (Step.DRAIN, On.FAILED): (*_STUCK, *_UNPROVEN),
    (Step.DRAIN, On.LATER): _serve(Step.DRAIN),
    (Step.DRAIN, On.LOST): _serve(Step.DRAIN),
    (Step.DRAIN, On.STOPPED): _stopped(Step.DRAIN),
    (Step.LAUNCH, On.DONE): _CLIMB,
    (Step.LAUNCH, On.FAILED): _GIVE_UP,
    (Step.LAUNCH, On.LATER): _serve(Step.LAUNCH),
    (Step.LAUNCH, On.LOST): _serve(Step.LAUNCH),
    (Step.LAUNCH, On.STOPPED): _stopped(Step.LAUNCH),
    (Step.END_JOB, On.DONE): (_go(Step.VERIFY),),
    (Step.END_JOB, On.FAILED): _CLIMB,
    (Step.END_JOB, On.LATER): _retry(Step.END_JOB),
    (Step.END_JOB, On.LOST): _lost(Step.END_JOB),
    (Step.END_JOB, On.STOPPED): _stopped(Step.END_JOB),
    (Step.RESET_GPU, On.DONE): (_go(Step.VERIFY),),
    (Step.RESET_GPU, On.FAILED): _CLIMB,
    (Step.RESET_GPU, On.LATER): _retry(Step.RESET_GPU),
    (Step.RESET_GPU, On.LOST): _lost(Step.RESET_GPU),
    (Step.RESET_GPU, On.STOPPED): _stopped(Step.RESET_GPU),
    (Step.REBOOT, On.DONE): (_go(Step.VERIFY),),
    (Step.REBOOT, On.FAILED): (*_HEALED, _go(Step.HAND_OFF, Guard.PERSONS), *_CLIMB),
    (Step.REBOOT, On.LATER): _retry(Step.REBOOT),
    (Step.REBOOT, On.LOST): _lost(Step.REBOOT),
    (Step.REBOOT, On.STOPPED): _stopped(Step.REBOOT),
    (Step.REPLACE, On.DONE): (_go(Step.HAND_OFF, Guard.REHEARSED), _go(Ending.END)),
    (Step.REPLACE, On.FAILED): _GIVE_UP,
    (Step.REPLACE, On.LATER): _retry(Step.REPLACE),
    (Step.REPLACE, On.LOST): _again(Step.REPLACE),
    (Step.REPLACE, On.STOPPED): _stopped(Step.REPLACE),
    (Step.VERIFY, On.PASSED): _PROOF,
    (Step.VERIFY, On.STANDS): (*_DISPUTE, *_CLIMB),
    (Step.VERIFY, On.UNCLEAR): _again(Step.VERIFY, _UNPROVEN),
    (Step.VERIFY, On.STOPPED): _again(Step.VERIFY),
    (Step.RELEASE, On.DONE): _PROBATION,
    (Step.RELEASE, On.FAILED): _GIVE_UP,
    (Step.RELEASE, On.LATER): _again(Step.RELEASE),
    (Step.RELEASE, On.LOST): _again(Step.RELEASE),
    (Step.RELEASE, On.STOPPED): (
        _go(Step.CLOSE, Guard.ENDED_BY_PERSON),
        _stay(Step.RELEASE, Guard.RESTING),
        _go(Step.HAND_OFF, Guard.TRIED_OUT),
        _go(Step.VERIFY),
    ),
    (Step.CLOSE, On.DONE): (_go(Ending.END),),
    (Step.CLOSE, On.FAILED): _GIVE_UP,
    (Step.CLOSE, On.LATER): _again(Step.CLOSE),
    (Step.CLOSE, On.LOST): _again(Step.CLOSE),
    (Step.CLOSE, On.STOPPED): (_go(Ending.END),),
    (Step.CLOSE, On.GONE): (_go(Ending.END),),
}
"""Without `give-back`, which serves every stage that needs no lease (`NO_LEASE`), and `idle`, which
serves the wait for jobs.

A launch or a replace that nobody knows the end of is asked for again under its own operation id:
that is how its provider is asked what became of it.
"""

NO_LEASE = frozenset(
    {Step.TOLERATE, Step.PROBATION, Step.CLOSE, Step.HAND_OFF, Ending.ASK, Ending.END}
)
"""Stages in which a lease is given back first: nobody keeps one while a person thinks."""


def as_text() -> str:
    """The table in words, one row a line: for documents and for reading in a terminal."""
    rows = [("first of all", FIRST)]
    rows += [(f"{step or 'opening'}, {on}", moves) for (step, on), moves in LADDER.items()]
    return "\n".join(f"{name}: {'; '.join(_words(each) for each in row)}" for name, row in rows)


def as_mermaid() -> str:
    """The main way of the ladder as a mermaid diagram: moves that need no person."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (step, on), moves in LADDER.items():
        for move in moves:
            if step not in (None, move.to) and not move.wait and move.to is not Step.HAND_OFF:
                edges.setdefault((str(step), str(move.to)), []).append(str(on))
    lines = [
        f"    {_name(a)} --> {_name(b)}: {', '.join(dict.fromkeys(on))}"
        for (a, b), on in edges.items()
    ]
    return "\n".join(["stateDiagram-v2", "    [*] --> hold", *lines])


def _name(stage: str) -> str:
    """Mermaid's names of states have no hyphens."""
    return stage.replace("-", "_")


def _words(move: Move) -> str:
    verb = "stay in" if move.wait else "go to"
    return f"{verb} {move.to}" if move.when is Guard.ALWAYS else f"{verb} {move.to} if {move.when}"
