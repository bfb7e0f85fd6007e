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
from policies.once import kept
from policies.parts import gpu_of
from policies.scene import Scene

_RANKS = {step: place for place, step in enumerate(REPAIRS)}


def rank(step: Step) -> int:
    """How harsh a repair is: its place in the order of them all."""
    return _RANKS[step]


def tried_for(scene: Scene, fault: Fault) -> int:
    """The highest rank that was tried for this very fault in this incident; -1 for none."""
    ranks = [rank(each.request.step) for each in scene.repairs if was_for(each, fault)]
    return max(ranks, default=-1)


def used_up(scene: Scene, fault: Fault, terms: FaultTerms, step: Step) -> bool:
    """Whether a step was tried as often as it may be within the window."""
    return times_tried(scene, fault.part, step, terms.attempts.window) >= terms.attempts.of(step)


def times_tried(scene: Scene, part: Part, step: Step, window: timedelta) -> int:
    """How often a step was tried on a part, or on the machine, within the window before now."""
    since = scene.now - window
    mine = [each for each in _past(scene) if each.step is step and each.at >= since]
    return sum(_concerns(each.step, each.parts, part) for each in mine)


@kept
def _past(scene: Scene) -> tuple[PastAttempt, ...]:
    """What was tried on this machine, in earlier incidents and in this one."""
    before = scene.recalled.past if scene.recalled else ()
    ours = [PastAttempt(each.step, each.started, each.request.parts) for each in scene.repairs]
    return (*before, *ours)


def serves(step: Step, on: Part, part: Part) -> bool:
    """Whether a repair that is done for one part serves another, too."""
    if step in (Step.REBOOT, Step.REPLACE):
        return True
    return gpu_of(on) == gpu_of(part)


def was_for(attempt: Attempt, fault: Fault) -> bool:
    """Whether a repair was tried for this very fault."""
    asked, part, name = attempt.request, fault.part, fault.name
    named = [each for each in asked.faults if each.part == part and each.name is name]
    return bool(named) and _concerns(asked.step, asked.parts, part)


def _concerns(step: Step, parts: Iterable[Part], part: Part) -> bool:
    """Whether a repair of these parts was one of this part, too; of none named: of all."""
    resets = {gpu_of(each) for each in parts} if step is Step.RESET_GPU else ()
    return not resets or gpu_of(part) in resets
