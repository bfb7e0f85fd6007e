"""What comes next for an incident: pure, and the same in production, simulator and what-if.

Derive where the ladder stands from the facts, take the first move whose guard holds, and say it as
a decision with its reasons. No clock, no chance, no log.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from fleet.decision import Act, Basis, Close, Decision, HandOff, Wait
from fleet.incident import End, Incident
from fleet.outcome import OutcomeKind
from fleet.request import StepRequest
from fleet.step import REPAIRS, Step
from policies.asking import ask_of
from policies.guards import GUARDS
from policies.ladder import FIRST, LADDER, NO_LEASE, Ending, Guard, Move
from policies.outlook import outlook
from policies.requests import request_for
from policies.scene import Scene
from policies.schema import Policy
from policies.timers import TIMERS
from policies.wording import facts_of, needs_of, reasons_for

_Judged = tuple[Move, Callable[[Scene], bool] | None, Callable[[Scene], datetime | None] | None]
"""A move with the guard that must hold or, for a wait, the timer that must run."""


def _judged(move: Move) -> _Judged:
    return (move, None, TIMERS[move.when]) if move.wait else (move, GUARDS[move.when], None)


_FIRST = tuple(map(_judged, FIRST))
_LADDER = {row: tuple(map(_judged, moves)) for row, moves in LADDER.items()}


def decide(policy: Policy, incident: Incident, now: datetime) -> Decision:
    """Return the one thing to do, or to wait for, now. Equal arguments, equal decision."""
    scene = Scene(policy, incident, now)
    move, until = next_move(scene)
    basis = basis_of(scene)
    if _owes_lease(scene, move):
        request = request_for(scene, Step.GIVE_BACK)
        if move.to in (Step.HAND_OFF, Ending.ASK):  # for a person, who has the node meanwhile
            request = replace(request, makes_way_for=Step.HAND_OFF)
        return Act(request, reasons_for(scene, Move(Step.GIVE_BACK)), basis)
    reasons = reasons_for(scene, move)
    if move.to is Ending.ASK:
        assert until, "a question has a time by which it must be answered"
        return ask_of(scene, move, until, reasons, basis)
    if move.to is Ending.END:
        return Close(end_of(scene), reasons, basis)
    if until:
        return Wait(move.to, until, reasons, basis)
    if move.to is Step.HAND_OFF:
        return HandOff(needs_of(scene, move), reasons, basis)
    return Act(_request(scene, move.to), reasons, basis)


def next_move(scene: Scene) -> tuple[Move, datetime | None]:
    """The first move whose guard holds, and until when where it is a wait."""
    step = scene.cursor.step if scene.cursor else None
    taken = _taken(scene, _FIRST) or _taken(scene, _LADDER[step, scene.on])
    assert taken, f"the row {step}, {scene.on} of the ladder leads nowhere"
    return taken


def _taken(scene: Scene, moves: tuple[_Judged, ...]) -> tuple[Move, datetime | None] | None:
    for move, guard, timer in moves:
        if guard and guard(scene):
            return move, None
        until = timer(scene) if timer else None
        if until is not None and scene.now < until:
            return move, until
    return None


def end_of(scene: Scene) -> End:
    """Which of the ends this is, once nothing is left to do."""
    if GUARDS[Guard.REPLACED](scene) or (scene.gone_at and _was_replacing(scene)):
        return End.REPLACED
    if scene.gone_at or (scene.incident.node_gone and not scene.incident.held):
        return End.SUPERSEDED
    if scene.dry:
        return End.CANCELLED if scene.cancelled_at else End.RECOVERED
    if scene.cancelled_at or GUARDS[Guard.MARK_TAKEN](scene):
        return End.CANCELLED
    if scene.incident.handed_off:
        return End.HANDED_OFF
    if any(each.ours for each in scene.repairs):
        return End.REPAIRED
    return End.RECOVERED if not scene.incident.orders else End.CANCELLED


def _was_replacing(scene: Scene) -> bool:
    """A Node that goes while we replace its machine is what was wanted."""
    tried = (OutcomeKind.AMBIGUOUS, OutcomeKind.SUPERSEDED)
    last = next((e for e in reversed(scene.incident.attempts) if e.step in REPAIRS), None)
    return last is not None and last.step is Step.REPLACE and last.outcome.kind in tried


def basis_of(scene: Scene) -> Basis:
    """What the decision rests on."""
    digests = (scene.incident.digest, scene.policy.digest)
    return Basis(scene.now, facts_of(scene), *digests, outlook(scene))


def _request(scene: Scene, step: Step) -> StepRequest:
    request = request_for(scene, step)
    return replace(request, end=end_of(scene).value) if step is Step.CLOSE else request


def _owes_lease(scene: Scene, move: Move) -> bool:
    """Whether a lease, or an ask for one, is to be given back before this.

    A budget that cannot be reached frees it itself when the run is closed, so this is tried a few
    times and then left.
    """
    if move.to not in NO_LEASE or scene.asked is None:
        return False
    if move.to is Ending.ASK and scene.in_doubt:
        return False
    last = scene.incident.attempts[-1]
    return last.step is not Step.GIVE_BACK or last.tries < scene.limits.step_tries
