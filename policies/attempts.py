"""What was tried already: for a fault within this incident, on a machine and part over all of them.

A repair of the whole machine counts for every part; a reset counts for its own GPUs.
"""

from collections.abc import Iterable
from datetime import timedelta

from fleet.fault import Fault
from fleet.incident import Attempt
from fleet.outcome import PastAttempt
from fleet.part import Part
from fleet.step import REPAIRS, Step
from policies.fault_terms import FaultTerms
from policies.parts import gpu_of
from policies.scene import Scene


def rank(step: Step) -> int:
    """How harsh a repair is: its place in the order of them all."""
    return REPAIRS.index(step)


def tried_for(scene: Scene, fault: Fault) -> int:
    """The highest rank that was tried for this very fault in this incident; -1 for none."""
    ranks = (rank(each.step) for each in scene.repairs if was_for(each, fault))
    return max(ranks, default=-1)


def used_up(scene: Scene, fault: Fault, terms: FaultTerms, step: Step) -> bool:
    """Whether a step was tried as often as it may be within the window."""
    return times_tried(scene, fault.part, step, terms.attempts.window) >= terms.attempts.of(step)


def times_tried(scene: Scene, part: Part, step: Step, window: timedelta) -> int:
    """How often a step was tried on a part, or on the machine, within the window before now."""
    past = scene.recalled.past if scene.recalled else ()
    since = scene.now - window
    every = (*past, *_remembered(scene.repairs))
    return sum(each.step is step and each.at >= since and _concerns(each, part) for each in every)


def serves(step: Step, on: Part, part: Part) -> bool:
    """Whether a repair that is done for one part serves another, too."""
    if step in (Step.REBOOT, Step.REPLACE):
        return True
    return gpu_of(on) == gpu_of(part)


def was_for(attempt: Attempt, fault: Fault) -> bool:
    """Whether a repair was tried for this very fault."""
    named = any(each.key == fault.key for each in attempt.request.faults)
    past = PastAttempt(attempt.step, attempt.started, attempt.request.parts)
    return named and _concerns(past, fault.part)


def _remembered(repairs: Iterable[Attempt]) -> Iterable[PastAttempt]:
    return (PastAttempt(each.step, each.started, each.request.parts) for each in repairs)


def _concerns(attempt: PastAttempt, part: Part) -> bool:
    if attempt.step is not Step.RESET_GPU or not attempt.parts:
        return True
    return gpu_of(part) in {gpu_of(each) for each in attempt.parts}
