"""How long each waiting stage of the ladder lasts: until an instant, or not at all (None).

All times are absolute, counted from facts, so a restart neither shortens nor lengthens one.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from fleet.reason import BUSY_ELSEWHERE, INTERRUPTED, PAUSED
from fleet.step import Step
from policies.guards import GUARDS
from policies.ladder import Guard
from policies.plan import drain_of, plan_of
from policies.questions import approval_until, force_until, skipped, stuck
from policies.scene import Scene
from policies.tolerance import due_of, next_look


def _node_away(scene: Scene) -> datetime | None:
    return scene.gone_at + scene.limits.unknown_wait if scene.gone_at else None


def _hold_taken(scene: Scene) -> datetime | None:
    return scene.hold_taken_at + scene.limits.pause if scene.hold_taken_at else None


def _paused(scene: Scene) -> datetime | None:
    over = scene.paused_at and GUARDS[Guard.PAUSE_OVER](scene)
    return scene.paused_at + scene.limits.pause if scene.paused_at and over else None


def _nothing_stands(scene: Scene) -> datetime | None:
    return None if scene.standing else scene.hold_started + scene.limits.unknown_wait


def _tolerated(scene: Scene) -> datetime | None:
    due, look = due_of(scene), next_look(scene)
    return min(due, look) if due and look else due


def _clearing(scene: Scene) -> datetime | None:
    """Until a check can pass of which the agent has had time enough to know."""
    return scene.agent_heard_at if GUARDS[Guard.TOO_SOON](scene) else None


def _resting(scene: Scene) -> datetime | None:
    """No rest after our own interruption: what interrupted is a fact by now."""
    assert scene.cursor, "only what was tried is rested from"
    outcome, ended = scene.cursor.outcome, scene.cursor.ended
    if outcome.reason == INTERRUPTED:
        return None
    long = outcome.reason in (PAUSED, BUSY_ELSEWHERE)
    return ended + (scene.limits.look_again if long else scene.limits.step_pause)


def _dispute_rests(scene: Scene) -> datetime | None:
    assert scene.cursor, "only a verify can be disputed"
    disputed = GUARDS[Guard.DISPUTED](scene)
    return scene.cursor.ended + scene.limits.step_pause if disputed else None


def _queued(scene: Scene) -> datetime | None:
    """Until asked again: at once when the budget says yes, else now and then."""
    assert scene.cursor, "only an ask is queued"
    if scene.queued_since is None:
        granted = scene.granted_since(scene.cursor.started)
        return None if granted else scene.cursor.ended + scene.limits.step_pause
    return scene.cursor.ended + scene.limits.look_again


def _settling(scene: Scene) -> datetime | None:
    """A repair that may have begun is over at its own deadline, or when the node has booted."""
    assert scene.cursor, "only what was tried can settle"
    booted = scene.incident.boot_id != scene.cursor.request.boot_id
    return None if booted else scene.cursor.request.deadline


def _on_probation(scene: Scene) -> datetime | None:
    """After a cancel only as long as the fault would bring the hold back at once."""
    if scene.cancelled_at:
        return None if scene.report_healthy else scene.cancelled_at + scene.limits.cool_down
    release = scene.released
    if release and skipped(scene, Step.PROBATION, release.ended):
        return None
    faults = [scene.policy.fault(each.fault.name) for each in scene.incident.sightings]
    longest = max((each.probation for each in faults), default=None)
    return release.ended + longest if release and longest else None


def _unapproved(scene: Scene) -> datetime | None:
    plan = plan_of(scene)
    return approval_until(scene, plan.next) if plan and plan.next else None


def _stuck(scene: Scene) -> datetime | None:
    blocked = stuck(scene)
    drain = drain_of(scene, blocked.request.makes_way_for) if blocked else None
    return force_until(scene, drain)


TIMERS: Mapping[Guard, Callable[[Scene], datetime | None]] = {
    Guard.NODE_AWAY: _node_away,
    Guard.HOLD_TAKEN: _hold_taken,
    Guard.PAUSED: _paused,
    Guard.NOTHING_STANDS: _nothing_stands,
    Guard.TOLERATED: _tolerated,
    Guard.UNAPPROVED: _unapproved,
    Guard.STUCK: _stuck,
    Guard.CLEARING: _clearing,
    Guard.DISPUTE_RESTS: _dispute_rests,
    Guard.RESTING: _resting,
    Guard.QUEUED: _queued,
    Guard.SETTLING: _settling,
    Guard.ON_PROBATION: _on_probation,
}
