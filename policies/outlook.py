"""What comes next on the ladder, after what is being done now: in words, for people who look on."""

from fleet.step import Step
from policies.plan import Plan, plan_of
from policies.questions import answer_to, question_id
from policies.scene import Scene


def outlook(scene: Scene) -> tuple[str, ...]:
    """The repairs that are left, in order, each with what it waits for; then a person's turn."""
    if scene.released or scene.cancelled_at or scene.incident.handed_off:
        return ()
    plan = plan_of(scene)
    if plan is None:
        return ("nothing is to be repaired: it is looked whether the node is well",)
    repairs = tuple(_repair(scene, plan, each) for each in plan.steps)
    if plan.needs:
        return (*repairs, *(f"hand-off: {each}" for each in plan.needs))
    return (*repairs, "if nothing helps: hand-off to a person, with the hold kept")


def _repair(scene: Scene, plan: Plan, step: Step) -> str:
    first = step is plan.next
    asks = scene.policy.approval(step) is not None
    if asks and first and answer_to(scene, question_id(scene, step)):
        return f"{step}, which a person approved"
    words = f"{step}, once a person says yes" if asks else str(step)
    return words if first else f"if that does not help: {words}"
