"""How long jobs may stay: each fault's own time from its own first sight, and the shortest of all.

A node that does not answer can be neither drained nor looked at, so there the clock of its silence
alone counts: jobs that run on behind a kubelet that restarts are not to be killed.
"""

from datetime import datetime, timedelta

from fleet.fault import FaultName
from fleet.sighting import Sighting
from fleet.step import Step
from policies.once import kept
from policies.questions import skipped
from policies.scene import Scene

RARER = 24
"""Looks at jobs come after this part of the time waited so far, so that a week has no thousands."""


@kept
def due_of(scene: Scene) -> datetime | None:
    """When the first of the standing faults has been tolerated long enough."""
    return min([due_at(scene, each) for each in _counting(scene)], default=None)


def due_at(scene: Scene, sighting: Sighting) -> datetime:
    """When this fault has been tolerated long enough; earlier where nobody uses the GPUs, and where
    a person skipped the rest.
    """
    terms = scene.policy.fault(sighting.fault.name)
    due = sighting.first + terms.tolerate
    skip = skipped(scene, Step.TOLERATE, scene.hold_started)
    if skip:
        due = min(due, skip.at)
    idle = scene.idle_at if terms.sooner_if_idle else None
    return min(due, idle) if idle else due


def is_due(scene: Scene, sighting: Sighting) -> bool:
    """Whether this fault is not tolerated any more."""
    return scene.now >= due_at(scene, sighting)


@kept
def next_look(scene: Scene) -> datetime | None:
    """When it is to be seen whether jobs still use the GPUs; None where that changes nothing."""
    due = due_of(scene)
    if due is None or due <= scene.now or not any(_hastens(scene, e) for e in _counting(scene)):
        return None
    last = scene.incident.last(Step.IDLE)
    if last is None or last.started < scene.hold_started:
        return scene.now
    waited = last.ended - scene.hold_started
    return last.ended + max(scene.limits.idle_look, waited / RARER)


def _hastens(scene: Scene, sighting: Sighting) -> bool:
    """Whether this fault would not wait if nobody used the GPUs."""
    return scene.policy.fault(sighting.fault.name).sooner_if_idle


def stay_of(scene: Scene) -> timedelta:
    """How long jobs may stay after the first sight of the fault that is due first."""
    first = min(_counting(scene), key=lambda each: due_at(scene, each))
    return scene.policy.fault(first.fault.name).tolerate


def _counting(scene: Scene) -> tuple[Sighting, ...]:
    if scene.answers:
        return scene.accused
    silent = FaultName.HOST_UNREACHABLE
    return tuple(each for each in scene.standing if each.fault.name is silent)
