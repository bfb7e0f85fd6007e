"""What each guard of the ladder means: one small question to the facts each."""

from collections.abc import Callable, Mapping

from fleet.incident import MAX_ATTEMPTS
from fleet.open_request import CODE
from fleet.order import Verb
from fleet.outcome import OutcomeKind
from fleet.reason import BUSY_ELSEWHERE, NEEDS_APPROVAL, PAUSED
from fleet.step import Step
from policies.ladder import Guard, On
from policies.means import may_launch
from policies.plan import drain_of, plan_of
from policies.questions import force_approved, stuck
from policies.scene import Scene
from policies.tolerance import next_look

OUT_OF_BOUNDS = MAX_ATTEMPTS - 20
"""Attempts after which a person gets the incident; the rest is for giving the node back."""


def _closed(scene: Scene) -> bool:
    return scene.incident.last(Step.CLOSE, OutcomeKind.SUCCEEDED) is not None


def _replaced(scene: Scene) -> bool:
    return not scene.dry and scene.incident.last(Step.REPLACE, OutcomeKind.SUCCEEDED) is not None


def _well_again(scene: Scene) -> bool:
    return scene.dry and scene.report_healthy and scene.cursor is not None


def _mark_taken(scene: Scene) -> bool:
    removed = scene.incident.hold_removed
    if removed is None or not removed.mark_removed or removed.uid != scene.incident.node.uid:
        return False
    return removed.at >= scene.hold_started


def _cancelled(scene: Scene) -> bool:
    """Not where the release is under way already: then its own row goes on."""
    return scene.cancelled_at is not None and not _leaving(scene)


def _cancelled_marked(scene: Scene) -> bool:
    gone = scene.hold_taken_at or (scene.released and not scene.incident.held)
    return _cancelled(scene) and bool(gone)


def _leaving(scene: Scene) -> bool:
    """Whether a release or close was tried since the person's word."""
    cursor, at = scene.cursor, scene.cancelled_at
    order = scene.order(Verb.RELEASE)
    said = max((each for each in (at, order.at if order else None) if each), default=None)
    if cursor is None or said is None:
        return False
    return cursor.step in (Step.RELEASE, Step.CLOSE) and cursor.started >= said


def _release_ordered(scene: Scene) -> bool:
    order = scene.order(Verb.RELEASE)
    if order is None or order.at < scene.hold_started or scene.released:
        return False
    return not _leaving(scene)


def _pause_over(scene: Scene) -> bool:
    return scene.paused_at is not None and not _leaving(scene)


def _handed_off(scene: Scene) -> bool:
    handed = scene.incident.handed_off
    if handed is None or _leaving(scene) or _taken_back(scene):
        return False
    said = (Verb.RESUME, Verb.RELEASE)
    return not any(scene.ordered_since(each, handed.at) for each in said)


def _taken_back(scene: Scene) -> bool:
    """Nobody but a person ever saw a fault here, and takes that back: a word like any order."""
    found = [each.fault for each in scene.incident.sightings]
    return bool(found) and all(each.code == CODE for each in found) and scene.healthy


def _resumed(scene: Scene) -> bool:
    """After a hand-off that was resumed, nothing is done before a verify has looked."""
    handed, resume = scene.incident.handed_off, scene.order(Verb.RESUME)
    if handed is None or resume is None or resume.at < handed.at or not scene.incident.held:
        return False
    verify = scene.incident.last(Step.VERIFY)
    return verify is None or verify.started < resume.at


def _out_of_bounds(scene: Scene) -> bool:
    many = len(scene.incident.attempts) >= OUT_OF_BOUNDS
    return many and not _leaving(scene) and not scene.released


def _not_held(scene: Scene) -> bool:
    if scene.incident.held or scene.released or scene.cursor is None:
        return False
    return scene.cursor.step is not Step.HOLD or scene.on is On.DONE


def _recovered(scene: Scene) -> bool:
    return scene.healthy and not scene.repaired


def _doubted(scene: Scene) -> bool:
    """Healthy by the report alone is not enough once we saw the fault, or tried a repair."""
    verify, report = scene.verify, scene.incident.report
    if report is None or not scene.report_healthy:
        return False
    if not scene.standing:
        return scene.repaired
    newer = verify is None or report.observed > verify.started
    return newer and all(each.proven for each in scene.standing)


def _proven(scene: Scene) -> bool:
    return scene.healthy and scene.on is On.PASSED


def _anew(scene: Scene) -> bool:
    assert scene.cursor, "only a verify is followed by a fault that is new"
    again = scene.tries < scene.limits.verify_tries
    return again and any(each.since > scene.cursor.started for each in scene.standing)


def _too_soon(scene: Scene) -> bool:
    """Once the agent had its time, one more check that passes makes it the suspect witness."""
    return scene.cursor is not None and scene.cursor.started < scene.agent_heard_at


def _recurred(scene: Scene) -> bool:
    release = scene.released
    if release is None or scene.cancelled_at is not None:
        return False
    return any(each.since > release.started for each in scene.standing)


def _disputed(scene: Scene) -> bool:
    """Once something was repaired the agent may have been told so: then our own check counts."""
    return scene.report_healthy and not scene.repaired


def _contradicted(scene: Scene) -> bool:
    return _disputed(scene) and scene.tries >= scene.limits.verify_tries


def _no_way(scene: Scene) -> bool:
    plan = plan_of(scene)
    if plan is None or plan.next is not None:
        return plan is None
    return not plan.empties or not _undrained(scene)


def _unseen(scene: Scene) -> bool:
    """A Node object that was made anew by our repair is held first, and then looked at."""
    verify = scene.verify
    return any(verify is None or each.started > verify.started for each in scene.repairs)


def _unremembered(scene: Scene) -> bool:
    plan = plan_of(scene)
    return scene.recalled is None and plan is not None and plan.next is not None


def _unconfirmed(scene: Scene) -> bool:
    """On a node that does not answer no check of ours can run; its silence has other witnesses."""
    return scene.answers and scene.confirmed_at is None


def _stale(scene: Scene) -> bool:
    at = scene.confirmed_at
    return scene.answers and (at is None or scene.now >= at + scene.limits.look_again)


def _unlaunched(scene: Scene) -> bool:
    """Once a lease: a successor that was ready for an earlier one may be gone by now."""
    plan = plan_of(scene)
    if plan is None or plan.next is not Step.REPLACE or not may_launch(scene):
        return False
    launch = scene.incident.last(Step.LAUNCH, OutcomeKind.SUCCEEDED)
    return launch is None or launch.started < (scene.leased_at or scene.now)


def _unwatched(scene: Scene) -> bool:
    look = next_look(scene)
    return look is not None and look <= scene.now


def _undrained(scene: Scene) -> bool:
    plan = plan_of(scene)
    if plan is None or not (plan.next or plan.empties):
        return False
    if drain_of(scene, plan.next or Step.REBOOT) is None:
        return False
    drain = scene.incident.last(Step.DRAIN, OutcomeKind.SUCCEEDED)
    if drain is None or drain.started < scene.hold_started:
        return True
    return plan.next is not None and drain.request.makes_way_for is not plan.next


def _forced(scene: Scene) -> bool:
    blocked = stuck(scene)
    return blocked is not None and force_approved(scene, blocked.request.makes_way_for)


def _next_is(step: Step) -> Callable[[Scene], bool]:
    def guard(scene: Scene) -> bool:
        plan = plan_of(scene)
        return plan is not None and plan.next is step

    return guard


def _tries_left(scene: Scene) -> bool:
    """A refusal because people or others are at the node is waited out as long as a pause."""
    assert scene.cursor, "only what was tried can be tried again"
    if scene.cursor.outcome.reason in (PAUSED, BUSY_ELSEWHERE):
        return scene.now < scene.cursor.since + scene.limits.pause
    verify = scene.cursor.step is Step.VERIFY
    return scene.tries < (scene.limits.verify_tries if verify else scene.limits.step_tries)


def _still_next(scene: Scene) -> bool:
    assert scene.cursor, "only what was tried can be tried again"
    leased = scene.leased_at is not None
    return leased and _tries_left(scene) and _next_is(scene.cursor.step)(scene)


def _wait_left(scene: Scene) -> bool:
    assert scene.cursor, "only an ask can wait"
    return scene.now < scene.cursor.since + scene.limits.lease_wait


def _persons(scene: Scene) -> bool:
    """Nobody says what a silent machine does: no reason to go on to something harsher."""
    return scene.cursor is not None and scene.cursor.outcome.reason == NEEDS_APPROVAL


def _ended_by_person(scene: Scene) -> bool:
    return scene.cancelled_at is not None


GUARDS: Mapping[Guard, Callable[[Scene], bool]] = {
    Guard.ALWAYS: lambda _: True,
    Guard.CLOSED: _closed,
    Guard.REPLACED: _replaced,
    Guard.WELL_AGAIN: _well_again,
    Guard.REHEARSED: lambda scene: scene.dry,
    Guard.MARK_TAKEN: _mark_taken,
    Guard.NODE_LOST: lambda scene: scene.gone_at is not None,
    Guard.CANCELLED_MARKED: _cancelled_marked,
    Guard.CANCELLED: _cancelled,
    Guard.RELEASE_ORDERED: _release_ordered,
    Guard.PAUSE_OVER: _pause_over,
    Guard.HANDED_OFF: _handed_off,
    Guard.RESUMED: _resumed,
    Guard.OUT_OF_BOUNDS: _out_of_bounds,
    Guard.NOT_HELD: _not_held,
    Guard.RECOVERED: _recovered,
    Guard.DOUBTED: _doubted,
    Guard.PROVEN: _proven,
    Guard.ANEW: _anew,
    Guard.RECURRED: _recurred,
    Guard.TOO_SOON: _too_soon,
    Guard.DISPUTED: _disputed,
    Guard.CONTRADICTED: _contradicted,
    Guard.ANSWERS: lambda scene: scene.answers,
    Guard.UNWATCHED: _unwatched,
    Guard.NO_WAY: _no_way,
    Guard.UNSEEN: _unseen,
    Guard.UNREMEMBERED: _unremembered,
    Guard.UNCONFIRMED: _unconfirmed,
    Guard.FORCED: _forced,
    Guard.UNLEASED: lambda scene: scene.leased_at is None,
    Guard.UNLEASED_AGAIN: lambda scene: scene.leased_at is None and _tries_left(scene),
    Guard.STALE: _stale,
    Guard.UNDRAINED: _undrained,
    Guard.UNLAUNCHED: _unlaunched,
    Guard.NEXT_IS_END_JOB: _next_is(Step.END_JOB),
    Guard.NEXT_IS_RESET: _next_is(Step.RESET_GPU),
    Guard.NEXT_IS_REBOOT: _next_is(Step.REBOOT),
    Guard.NEXT_IS_REPLACE: _next_is(Step.REPLACE),
    Guard.TRIES_LEFT: _tries_left,
    Guard.STILL_NEXT: _still_next,
    Guard.TRIED_OUT: lambda scene: not _tries_left(scene),
    Guard.WAIT_LEFT: _wait_left,
    Guard.PERSONS: _persons,
    Guard.ENDED_BY_PERSON: _ended_by_person,
}
