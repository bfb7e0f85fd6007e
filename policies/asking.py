"""The questions that the ladder puts to people: in words, with their answers, id and evidence."""

import hashlib
from datetime import datetime

from fleet.decision import Ask, Basis
from fleet.names import PAUSE_ANNOTATION
from fleet.order import Verb
from fleet.reason import DEADLINE
from policies.ladder import Guard, Move
from policies.plan import plan_of
from policies.questions import force_id, question_id, stuck
from policies.scene import Scene

YES_OR_NO = ("approve", "deny")


def ask_of(
    scene: Scene, move: Move, until: datetime, reasons: tuple[str, ...], basis: Basis
) -> Ask:
    """The question of a move that leads to one."""
    question, answers, expiry, named = _QUESTIONS[move.when](scene)
    shown = "\n".join((question, *basis.facts))
    evidence = hashlib.sha256(shown.encode()).hexdigest()[:8] if named else ""
    return Ask(question, answers, until, expiry, reasons, basis, named, evidence)


_Words = tuple[str, tuple[str, ...], str, str]
"""The question, its answers, what no answer means, and its id if it has one."""


def _hold_taken(scene: Scene) -> _Words:
    text = f"somebody took our hold off {_node(scene)}: hold it again, or end the incident?"
    return text, ("resume", "cancel"), "cancel", ""


def _paused(scene: Scene) -> _Words:
    pause = scene.order(Verb.PAUSE)
    if pause is None or scene.ordered_since(Verb.RESUME, pause.at):
        return _annotated(scene)
    text = f"{pause.actor} paused {_node(scene)}: {pause.reason}. Go on?"
    return text, ("resume", "cancel", "release"), "hand-off", ""


def _annotated(scene: Scene) -> _Words:
    report = scene.incident.report
    why = (report.pause if report else "") or "no reason given"
    text = f"{_node(scene)} is paused by annotation {PAUSE_ANNOTATION}: {why}. Go on?"
    return text, ("take the annotation off", "cancel", "release"), "hand-off", ""


def _unapproved(scene: Scene) -> _Words:
    plan = plan_of(scene)
    assert plan, "a yes is asked for where a step comes next"
    assert plan.next, "a yes is asked for where a step comes next"
    tried = ", ".join(dict.fromkeys(each.step.value for each in scene.repairs if each.ours))
    so_far = f", after {tried} did not help" if tried else ""
    fault = plan.fault
    text = f"{plan.next} {_node(scene)}, for {fault.name} on {fault.part} ({fault.code}){so_far}?"
    return text, YES_OR_NO, "deny", question_id(scene, plan.next)


def _stuck(scene: Scene) -> _Words:
    drain = stuck(scene)
    assert drain, "a drain is forced where one did not come to its end"
    before = drain.request.makes_way_for
    spent = drain.outcome.reason == DEADLINE
    evict = "" if spent else "evict them, at the deadline "
    what = drain.outcome.detail or drain.outcome.reason
    text = (
        f"{_node(scene)} does not become empty for {before}: {what}."
        f" Force it ({evict}delete what is left, each Pod with its own grace period)?"
    )
    return text, YES_OR_NO, "deny", force_id(scene, before)


_QUESTIONS = {
    Guard.HOLD_TAKEN: _hold_taken,
    Guard.PAUSED: _paused,
    Guard.UNAPPROVED: _unapproved,
    Guard.STUCK: _stuck,
}


def _node(scene: Scene) -> str:
    return scene.incident.node.name
