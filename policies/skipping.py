"""What a person may skip, by what the incident is at; all else is refused in words.

| at | left out | then |
| --- | --- | --- |
| the wait for jobs (tolerance) | the rest of it | the way to the first repair |
| a lease, a drain, a launch, a rest between tries | the repair they serve | the next, or hand-off |
| probation | the rest of it | close |

Never a hold, a verify or a release: without them new work lands on a sick node. A repair that has
begun is not cut short, and a question has answers of its own.
"""

from fleet.decision import Act, Ask, Close, Decision, HandOff, Wait
from fleet.outcome import OutcomeKind
from fleet.step import REPAIRS, Step
from policies.plan import plan_of
from policies.scene import Scene

SERVE_A_REPAIR = (Step.LEASE, Step.DRAIN, Step.LAUNCH, *REPAIRS)
"""Stages whose wait, and the first three also while they are done, lead to a repair."""


def skippable(scene: Scene, decision: Decision | None) -> Step | str:
    """What a skip would leave out now; as words, why there is nothing to skip."""
    match decision:
        case Wait(stage):
            return _waiting(scene, stage)
        case Act(request):
            return _acting(scene, request.step)
        case Ask(id=pending):
            return f"answer the question: {'approve or deny' if pending else 'resume or cancel'}"
        case HandOff():
            return "a person has it: resume, release or cancel"
        case Close() | None:
            return "there is nothing to skip"


def _waiting(scene: Scene, stage: Step) -> Step | str:
    if stage is Step.TOLERATE and not scene.standing:
        return "nothing is tolerated: facts are waited for"
    if stage in (Step.TOLERATE, Step.PROBATION):
        return stage
    return _repair(scene) if stage in SERVE_A_REPAIR else f"{stage} is never skipped"


def _acting(scene: Scene, step: Step) -> Step | str:
    if step in REPAIRS:
        return f"{step} is under way and is never cut short"
    serves = step in SERVE_A_REPAIR
    return _repair(scene) if serves else f"{step} is under way, and it is never skipped"


def _repair(scene: Scene) -> Step | str:
    plan = plan_of(scene)
    if plan is None or plan.next is None:
        return "no repair comes next that could be left out"
    last = scene.cursor
    if last and last.step in REPAIRS and last.outcome.kind is OutcomeKind.AMBIGUOUS:
        return f"{last.step} may still be happening"
    return plan.next
