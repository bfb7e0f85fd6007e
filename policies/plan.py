"""Which repairs are left for the faults that stand, and when the first may begin.

Several faults at once: the worst ladder, the shortest time. What was tried for a fault is behind
it; what was tried too often on this machine or part is left out; advice skips forward and never
adds. An empty plan is a hand-off that says why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from fleet.fault import Advice, Fault, FaultName
from fleet.incident import Attempt
from fleet.outcome import OutcomeKind, PastAttempt
from fleet.part import Part
from fleet.sighting import Sighting
from fleet.step import REPAIRS, Means, Step
from policies.fault_terms import Drain, FaultTerms
from policies.parts import gpu_of
from policies.questions import left_out
from policies.scene import Scene

MEANS = frozenset({Step.END_JOB, Step.RESET_GPU, Step.REBOOT})
"""The repairs that the engine can do itself; each other one is a hand-off that asks for it."""

_ADVISED = {
    Advice.RESET_GPU: Step.RESET_GPU,
    Advice.REBOOT: Step.REBOOT,
    Advice.REPLACE: Step.REPLACE,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The repairs that are left, in order, and the fault whose ladder it is.

    `needs` says what a person must do; it is empty exactly where the first step can be done.
    """

    fault: Fault
    terms: FaultTerms
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()

    @property
    def next(self) -> Step | None:
        """The step to do next, if the engine may and can do it."""
        return self.steps[0] if self.steps and not self.needs else None


def plan_of(scene: Scene) -> Plan | None:
    """The plan for what stands; None where nothing does. Made once a scene."""
    if not scene.standing:
        return None
    made = _PLANS.get(scene)
    if made is None:
        made = max((_plan_for(scene, each) for each in scene.standing), key=_severity)
        _PLANS[scene] = made
    return made


_PLANS: WeakKeyDictionary[Scene, Plan] = WeakKeyDictionary()
"""Several guards ask for the plan of one decision; it goes with its scene."""


def _severity(plan: Plan) -> tuple[int, int, int, str]:
    """A ladder that is at its end is worst, then the one that begins highest, then the longest."""
    begins = REPAIRS.index(plan.steps[0]) if plan.steps else len(REPAIRS)
    return (begins, len(plan.needs), len(plan.steps), plan.fault.key)


def _plan_for(scene: Scene, sighting: Sighting) -> Plan:
    fault = sighting.fault
    terms = scene.policy.fault(fault.name)
    advised = _skip_to_advice(terms.steps, fault.advice)
    behind = _tried_for(scene.repairs, fault)
    left = tuple(each for each in advised if _rank(each) > behind)
    may = tuple(each for each in left if not _used_up(scene, fault, terms, each))
    said = next((left_out(scene, each) for each in may if left_out(scene, each)), "")
    may = tuple(each for each in may if not left_out(scene, each))
    needs = _needs(scene, fault, terms, (advised, left, may))
    if said and not may:
        needs = (f"look at {fault.name} on {fault.part} of {scene.incident.node.name}: {said}",)
    return Plan(fault, terms, may, needs)


def _skip_to_advice(steps: tuple[Step, ...], advice: Advice) -> tuple[Step, ...]:
    """Advice of a later step skips the earlier ones; advice that is not on the ladder adds none."""
    if advice is Advice.HAND_OFF:
        return ()
    wanted = _ADVISED.get(advice)
    return steps if wanted is None else tuple(s for s in steps if _rank(s) >= _rank(wanted))


def _rank(step: Step) -> int:
    return REPAIRS.index(step)


def _tried_for(repairs: Sequence[Attempt], fault: Fault) -> int:
    """The highest rank that was tried for this very fault; -1 for none."""
    keyed = (each for each in repairs if any(one.key == fault.key for one in each.request.faults))
    return max((_rank(each.step) for each in keyed), default=-1)


def _used_up(scene: Scene, fault: Fault, terms: FaultTerms, step: Step) -> bool:
    return times_tried(scene, fault.part, step, terms.attempts.window) >= terms.attempts.of(step)


def times_tried(scene: Scene, part: Part, step: Step, window: timedelta) -> int:
    """How often a step was tried on a part, or on the machine, within the window before now."""
    recall = scene.incident.last(Step.RECALL)
    past = recall.outcome.past if recall else ()
    since = scene.now - window
    every = (*past, *_remembered(scene.repairs))
    return sum(each.step is step and each.at >= since and _concerns(each, part) for each in every)


def _remembered(repairs: Iterable[Attempt]) -> Iterable[PastAttempt]:
    return (PastAttempt(each.step, each.started, each.request.parts) for each in repairs)


def _concerns(attempt: PastAttempt, part: Part) -> bool:
    if attempt.step is not Step.RESET_GPU or not attempt.parts:
        return True
    return gpu_of(part) in {gpu_of(each) for each in attempt.parts}


def _needs(
    scene: Scene, fault: Fault, terms: FaultTerms, sieves: tuple[tuple[Step, ...], ...]
) -> tuple[str, ...]:
    """What a person must do, by the sieve that let no step through; empty where one is left."""
    advised, left, may = sieves
    where = f"{fault.name} on {fault.part} of {scene.incident.node.name}"
    if scene.recurrences > scene.limits.recurrences:
        return (f"find out why {where} came back {scene.recurrences} times (limit recurrences)",)
    if fault.advice is Advice.HAND_OFF:
        return (f"look at {where} ({fault.code}): the evidence itself asks for a person",)
    if not terms.steps:
        return (f"look at {where} ({fault.code}): the policy lists no step for it",)
    if not advised:
        return (
            f"{fault.advice} {where} yourself: its evidence asks for that, its ladder has none",
        )
    if not left:
        return (f"look at {where}: every step of its ladder was tried and it still stands",)
    if not may:
        tried = ", ".join(f"{each} {terms.attempts.of(each)} times" for each in left)
        return (f"look at {where}: tried {tried} within {terms.attempts.window.days} days already",)
    return _means_missing(scene, fault, may[0], where)


def _means_missing(scene: Scene, fault: Fault, step: Step, where: str) -> tuple[str, ...]:
    if fault.name is FaultName.HOST_UNREACHABLE:
        return (f"{step} {where} from outside (provider or power): it does not answer",)
    if step not in MEANS:
        return (f"{step} the node, for {where}: the engine has no means for {step} here",)
    return ()


def may_launch(scene: Scene) -> bool:
    """Whether a successor can be had before the node goes."""
    recall = scene.incident.last(Step.RECALL, OutcomeKind.SUCCEEDED)
    return recall is not None and Means.LAUNCH in recall.outcome.means


def drain_of(scene: Scene, step: Step) -> Drain | None:
    """How the node is emptied before a step: the shortest deadline of what stands.

    A reboot or a replace always needs an empty node, whatever a policy leaves out; ending a job is
    itself the way to have its pods leave.
    """
    if step is Step.END_JOB:
        return None
    drains = [scene.policy.fault(each.fault.name).drain for each in scene.standing]
    given = [each for each in drains if each is not None]
    if given:
        return min(given, key=lambda each: each.deadline)
    return Drain() if step in (Step.REBOOT, Step.REPLACE) else None


def due_of(scene: Scene) -> datetime | None:
    """When the first of the standing faults has been tolerated long enough."""
    times = (each.first + scene.policy.fault(each.fault.name).tolerate for each in scene.standing)
    return min(times, default=None)
