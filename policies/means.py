"""By what means a step can be done to this node, and which of them the last recall found.

Until a recall has looked, every means counts as there: that is no reason to harm, since no harm is
done before a recall.
"""

from collections.abc import Iterable, Mapping

from fleet.step import Means, Step
from policies.scene import Scene

TAKES: Mapping[Step, tuple[Means, ...]] = {
    Step.RESET_GPU: (Means.INSIDE,),
    Step.REBOOT: (Means.INSIDE, Means.PROVIDER, Means.POWER),
    Step.LAUNCH: (Means.LAUNCH,),
    Step.REPLACE: (Means.REPLACE,),
}
"""Any one of these does it. What is not here takes the API server alone."""

_MEANING: Mapping[Means, str] = {
    Means.INSIDE: "a Pod on the node",
    Means.PROVIDER: "a provider that restarts machines",
    Means.POWER: "its power switch",
    Means.LAUNCH: "a provider that brings successors",
    Means.REPLACE: "a provider that takes machines back",
}


def can(scene: Scene, step: Step) -> bool:
    """Whether the engine has a means for this step on this node, as far as it knows.

    A node that answers can be worked on from inside, whatever a recall saw while it did not.
    """
    if step not in TAKES:
        return scene.answers
    usable, found = _usable(scene, step), _found(scene)
    if found is None:
        return bool(usable)
    return Means.INSIDE in usable or any(each in found for each in usable)


def may_launch(scene: Scene) -> bool:
    """Whether a recall has found that a successor can be had before the node goes."""
    found = _found(scene)
    return found is not None and Means.LAUNCH in found


def missing(scene: Scene, steps: Iterable[Step]) -> str:
    """What the engine would need for these steps, in words."""
    takes = (f"{each} takes {_words(_usable(scene, each))}" for each in steps)
    return "; ".join(takes) + ("" if scene.answers else " (it does not answer)")


def _words(means: tuple[Means, ...]) -> str:
    return " or ".join(_MEANING[each] for each in means) or "a node that answers"


def _usable(scene: Scene, step: Step) -> tuple[Means, ...]:
    """From inside a node nothing is done while it does not answer."""
    takes = TAKES.get(step, ())
    return takes if scene.answers else tuple([e for e in takes if e is not Means.INSIDE])


def _found(scene: Scene) -> tuple[Means, ...] | None:
    return scene.recalled.means if scene.recalled else None
