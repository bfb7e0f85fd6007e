"""Questions that are approved or denied: their ids, what was answered, and what is left out.

A question is about one step of one round. A round ends when something was repaired, the node was
held anew, or a person said resume after a hand-off: then the same step is a new question with a new
id, and no earlier yes or no counts. How a question is worded is `policies/wording.py`.
"""

import hashlib
from datetime import datetime, timedelta

from fleet.incident import Attempt
from fleet.instant import format_second
from fleet.order import ANSWERS, Order, Verb
from fleet.question import Question
from fleet.reason import DEADLINE, NEEDS_APPROVAL
from fleet.step import Step
from policies.durations import format_duration
from policies.fault_terms import AfterDeadline, Drain
from policies.ladder import On
from policies.pauses import stood_still
from policies.scene import Scene


def question_id(scene: Scene, *about: str) -> str:
    """The id of the question about a step in this round: the same facts, the same id.

    It carries the incident, so that a command that was copied from an old one answers nothing.
    """
    named = (scene.incident.opening.mark.id, *about, scene.round_at.isoformat())
    digest = hashlib.sha256("\n".join(named).encode()).hexdigest()[:8]
    return f"{about[0]}-{digest}"


def answer_to(scene: Scene, question: str) -> Order | None:
    """What a person answered to it; the first answer counts."""
    given = (each for each in scene.incident.orders if each.verb in ANSWERS)
    return next((each for each in given if each.ask == question), None)


def put(scene: Scene, question: str) -> Question | None:
    """The question as it was put, if it was."""
    return next((each for each in scene.incident.questions if each.id == question), None)


def open_until(scene: Scene, question: str, expires: timedelta) -> datetime | None:
    """Until when an answer is waited for; None once there is one. The past once it expired."""
    if answer_to(scene, question):
        return None
    asked = put(scene, question)
    return _until(scene, asked) if asked else scene.now + expires


def _until(scene: Scene, asked: Question) -> datetime:
    """A pause stops the clock: nobody can answer meanwhile."""
    return asked.until + stood_still(scene, asked.at)


def approval_until(scene: Scene, step: Step) -> datetime | None:
    """Until when a yes for the step is waited for; None where none is needed, or it is answered."""
    terms = scene.policy.approval(step)
    return open_until(scene, question_id(scene, step), terms.expires) if terms else None


def left_out(scene: Scene, step: Step) -> str:
    """Why people leave a step out in this round; empty where they do not."""
    if not (scene.incident.orders or scene.incident.questions):
        return ""
    skip = skipped(scene, step, scene.round_at)
    if skip:
        return f"{skip.actor} skipped {step}: {skip.reason}"
    if scene.policy.approval(step) is None:
        return ""
    return _no(scene, question_id(scene, step), str(step))


def skipped(scene: Scene, step: Step, since: datetime) -> Order | None:
    """The order by which a person left a step out, at or after a moment."""
    for each in reversed(scene.incident.orders):
        if each.verb is Verb.SKIP and each.skips is step and each.at >= since:
            return each
    return None


def stuck(scene: Scene) -> Attempt | None:
    """The drain that could not empty the node without a person's yes, if that is where we are."""
    last = scene.cursor
    if last is None or last.step is not Step.DRAIN or scene.on is not On.FAILED:
        return None
    blocked = last.outcome.reason in (DEADLINE, NEEDS_APPROVAL)
    return last if blocked and not last.request.force else None


def force_id(scene: Scene, makes_way_for: Step) -> str:
    """The id of the question whether the drain before a step may be forced."""
    return question_id(scene, Step.DRAIN, makes_way_for)


def force_until(scene: Scene, drain: Drain | None) -> datetime | None:
    """Until when a person may say whether the stuck drain is forced; None where none is asked."""
    blocked = stuck(scene)
    if blocked is None or drain is None or drain.after_deadline is not AfterDeadline.ASK:
        return None
    question = force_id(scene, blocked.request.makes_way_for)
    return open_until(scene, question, scene.limits.answer)


def force_approved(scene: Scene, makes_way_for: Step) -> bool:
    """Whether a person said yes to forcing the drain before a step in this round."""
    if not scene.incident.orders:
        return False
    answer = answer_to(scene, force_id(scene, makes_way_for))
    return answer is not None and answer.verb is Verb.APPROVE


def not_forced(scene: Scene) -> str:
    """Who said no to forcing the stuck drain, or that nobody answered; empty where it is open."""
    blocked = stuck(scene)
    return _no(scene, force_id(scene, blocked.request.makes_way_for), "force") if blocked else ""


def _no(scene: Scene, question: str, what: str) -> str:
    answer, asked = answer_to(scene, question), put(scene, question)
    if answer:
        denied = answer.verb is Verb.DENY
        return f"{answer.actor} denied {what}: {answer.reason}" if denied else ""
    if asked is None or scene.now < _until(scene, asked):
        return ""
    waited = format_duration(asked.until - asked.at)
    when = format_second(asked.at)
    return f"nobody answered within {waited} whether {what} may be done (asked {when})"
