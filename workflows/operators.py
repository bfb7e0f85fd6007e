"""Which order of a person an incident takes in its present state. The answer to no says why."""

from fleet.decision import Ask, Decision
from fleet.incident import Incident
from fleet.instant import format_instant
from fleet.names import PAUSE_ANNOTATION
from fleet.order import ANSWERS, MOST_CHARACTERS, Order, Said, Verb
from fleet.outcome import OutcomeKind
from fleet.step import Step


def refusal(verb: Verb, said: Said, incident: Incident, decision: Decision | None) -> str | None:
    """Why the order is refused, or None. `decision` is what the incident is at."""
    if not said.actor.strip() or not said.reason.strip():
        return "say who you are (actor) and why (reason)"
    if len(said.actor) > MOST_CHARACTERS or len(said.reason) > MOST_CHARACTERS:
        return f"actor and reason have at most {MOST_CHARACTERS} characters each"
    if verb in ANSWERS:
        return _no_answer(said, incident, decision)
    if said.ask:
        return f"{verb} answers no question: leave ask out"
    return _no_sense(verb, incident)


def _no_answer(said: Said, incident: Incident, decision: Decision | None) -> str | None:
    decided = answer_to(said.ask, incident)
    if decided:
        when = format_instant(decided.at.replace(microsecond=0))
        return f"{said.ask} is decided already: {decided.verb} by {decided.actor} at {when}"
    if not isinstance(decision, Ask) or not decision.id or answer_to(decision.id, incident):
        return "no question waits for a yes or a no"
    if said.ask != decision.id:
        return f"the question that waits is {decision.id} ({decision.question}): answer with its id"
    return None


def answer_to(ask: str, incident: Incident) -> Order | None:
    """What a person answered to a question."""
    answers = (each for each in incident.orders if each.verb in ANSWERS and each.ask == ask)
    return next(answers, None) if ask else None


def _no_sense(verb: Verb, incident: Incident) -> str | None:
    if verb is Verb.PAUSE and _paused(incident):
        return "it is paused already"
    if verb is Verb.RESUME and incident.annotated and not _waits_for_resume(incident):
        return f"the node is paused by annotation: take {PAUSE_ANNOTATION} off it"
    if verb is Verb.RESUME and not _waits_for_resume(incident):
        return "there is nothing to resume: it is neither paused nor handed off, and held"
    if verb is Verb.RELEASE and _in_service(incident):
        return "the node is in service already (probation)"
    if verb is Verb.RELEASE and _hold_taken(incident):
        return "our hold was taken off by hand: resume (it is held again) or cancel (it ends)"
    if verb is Verb.CANCEL and any(each.verb is Verb.CANCEL for each in incident.orders):
        return "it is cancelled already"
    return None


def _paused(incident: Incident) -> bool:
    said = [each.verb for each in incident.orders if each.verb in (Verb.PAUSE, Verb.RESUME)]
    return bool(said) and said[-1] is Verb.PAUSE


def _waits_for_resume(incident: Incident) -> bool:
    resumed = [each.at for each in incident.orders if each.verb is Verb.RESUME]
    handed, removed = incident.handed_off, incident.hold_removed
    open_since = [each.at for each in (handed, removed) if each]
    return _paused(incident) or any(not resumed or at > resumed[-1] for at in open_since)


def _hold_taken(incident: Incident) -> bool:
    removed = incident.hold_removed
    if removed is None or removed.uid != incident.node.uid or incident.held:
        return False
    orders = incident.orders
    return not any(each.verb is Verb.RESUME and each.at >= removed.at for each in orders)


def _in_service(incident: Incident) -> bool:
    return incident.last(Step.RELEASE, OutcomeKind.SUCCEEDED) is not None and not incident.held
