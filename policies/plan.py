"""Which repairs are left for the faults that stand.

Each fault has its own ladder: what was tried for it is behind it, what was tried too often on this
machine or part or lacks a means is left out, advice skips forward and never adds. Of several faults
the harshest step that one of them asks for comes next; a fault with nothing left needs a person,
unless a step that is left for another one serves its part, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fleet.fault import Advice, Fault
from fleet.outcome import OutcomeKind
from fleet.part import Part
from fleet.sighting import Sighting
from fleet.step import Step
from policies.attempts import rank, serves, tried_for, used_up, was_for
from policies.fault_terms import Drain, FaultTerms
from policies.means import can, missing
from policies.once import kept
from policies.parts import fits, gpu_of
from policies.questions import left_out
from policies.scene import Scene
from policies.tolerance import is_due

MOST_NEEDS = 4
"""Faults that one hand-off names; the rest is counted."""

_ADVISED = {
    Advice.RESET_GPU: Step.RESET_GPU,
    Advice.REBOOT: Step.REBOOT,
    Advice.REPLACE: Step.REPLACE,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The repairs that are left, in order, and the fault whose ladder it is.

    `needs` says what a person must do; it is empty exactly where the first step can be done.
    `empties`: the policy lists no step, yet wants the node empty before a person gets it.
    """

    fault: Fault
    terms: FaultTerms
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()

    @property
    def next(self) -> Step | None:
        """The step to do next, if the engine may and can do it."""
        return self.steps[0] if self.steps and not self.needs else None

    @property
    def empties(self) -> bool:
        """Whether the node is to be empty before a person gets it."""
        return not self.terms.steps and self.terms.drain is not None


@kept
def plan_of(scene: Scene) -> Plan | None:
    """The plan for what stands; None where nothing does."""
    return _worst(scene, _plans(scene)) if scene.standing else None


def parts_to_reset(scene: Scene) -> tuple[Part, ...]:
    """The GPUs whose faults ask for a reset now: one that may not have another is left alone."""
    ask = (each for each in _plans(scene) if each.next is Step.RESET_GPU)
    return tuple(sorted({gpu_of(each.fault.part) for each in ask}))


@kept
def _plans(scene: Scene) -> tuple[Plan, ...]:
    """The plans of the node's faults; several guards ask for them."""
    return tuple([_plan_for(scene, each) for each in scene.accused])


def _worst(scene: Scene, plans: tuple[Plan, ...]) -> Plan:
    able = [each for each in plans if each.steps]
    if len(able) == len(plans):
        return max(able, key=_severity)
    due = zip(plans, (is_due(scene, each) for each in scene.accused), strict=True)
    stuck = [plan for plan, its in due if its and not _served(plan, able)]
    if stuck or not able:
        return _handed_over(stuck or plans)
    return max(able, key=_severity)


def _served(plan: Plan, able: Iterable[Plan]) -> bool:
    """Whether a step that is left, for this fault or another, would serve its part."""
    return bool(plan.steps) or any(
        serves(step, each.fault.part, plan.fault.part) for each in able for step in each.steps
    )


def _severity(plan: Plan) -> tuple[int, int, str]:
    """The ladder that begins highest is worst, then the longest."""
    return (rank(plan.steps[0]), len(plan.steps), plan.fault.key)


def _handed_over(stuck: Sequence[Plan]) -> Plan:
    """One plan that says for every fault what a person must do, drained first if any wants it."""
    ordered = sorted(stuck, key=lambda each: (not each.empties, each.fault.key))
    needs = tuple(dict.fromkeys(need for each in ordered for need in each.needs))
    more = (f"and {len(needs) - MOST_NEEDS} more faults",) * (len(needs) > MOST_NEEDS)
    return replace(ordered[0], steps=(), needs=(*needs[:MOST_NEEDS], *more))


def _plan_for(scene: Scene, sighting: Sighting) -> Plan:
    fault = sighting.fault
    terms = scene.policy.fault(fault.name)
    advised = _skip_to_advice(terms.steps, fault.advice)
    behind = tried_for(scene, fault)
    left = tuple([e for e in advised if rank(e) > behind and fits(e, fault.part)])
    may = tuple([each for each in left if not used_up(scene, fault, terms, each)])
    wanted = tuple([each for each in may if not left_out(scene, each)])
    able = tuple([each for each in wanted if can(scene, each)])
    needs = _needs(scene, fault, terms, (advised, left, may, wanted, able))
    return Plan(fault, terms, () if needs else able, needs)


def _skip_to_advice(steps: tuple[Step, ...], advice: Advice) -> tuple[Step, ...]:
    """Advice of a later step skips the earlier ones; advice that is not on the ladder adds none."""
    if advice is Advice.HAND_OFF:
        return ()
    wanted = _ADVISED.get(advice)
    return steps if wanted is None else tuple([s for s in steps if rank(s) >= rank(wanted)])


def _where(scene: Scene, fault: Fault) -> str:
    return f"{fault.name} on {fault.part} of {scene.incident.node.name}"


def _needs(
    scene: Scene, fault: Fault, terms: FaultTerms, sieves: tuple[tuple[Step, ...], ...]
) -> tuple[str, ...]:
    """What a person must do, by the sieve that let no step through; empty where one is left."""
    advised, left, may, wanted, able = sieves
    if able and scene.recurrences <= scene.limits.recurrences:
        return ()
    where = _where(scene, fault)
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
        return (f"look at {where}: {_how_it_went(scene, fault)}, and it still stands",)
    if not may:
        tried = ", ".join(f"{each} {terms.attempts.of(each)} times" for each in left)
        return (f"look at {where}: tried {tried} within {terms.attempts.window.days} days already",)
    if not wanted:
        said = next(left_out(scene, each) for each in may)
        return (f"look at {where}: {said}",)
    steps = " or ".join(wanted)
    return (f"{steps} the node yourself, for {where}: no means here; {missing(scene, wanted)}",)


def _how_it_went(scene: Scene, fault: Fault) -> str:
    """What was tried for a fault, each step once, with how it ended if it did not succeed."""
    ends = {each.step: each.outcome for each in scene.repairs if was_for(each, fault)}
    words = (
        str(step) if end.kind is OutcomeKind.SUCCEEDED else f"{step} ({end.reason or end.kind})"
        for step, end in ends.items()
    )
    tried = ", ".join(words)
    return f"tried {tried}" if tried else "no step of its ladder reaches such a part"


def drain_of(scene: Scene, step: Step) -> Drain | None:
    """How the node is emptied before a step: the shortest deadline of what stands.

    A reboot or a replace always needs an empty node, whatever a policy leaves out. A node that does
    not answer cannot be emptied; ending a job is itself the way to have its pods leave.
    """
    if step is Step.END_JOB or not scene.answers:
        return None
    drains = [scene.policy.fault(each.fault.name).drain for each in scene.standing]
    given = [each for each in drains if each is not None]
    if given:
        return min(given, key=lambda each: each.deadline)
    return Drain() if step in (Step.REBOOT, Step.REPLACE) else None
