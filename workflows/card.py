"""The status card: what an operator reads in the Temporal UI, without our documents.

Markdown; why the node is held, what comes next, until when, what blocks it, who has said what.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from fleet.decision import Act, Ask, Close, Decision, HandOff, Wait
from fleet.incident import Incident
from fleet.instant import format_instant
from fleet.order import Order, Verb
from policies.carried import Ignored

DRY_RUN = "DRY RUN, nothing is touched: "
MOST_LINES = 8
"""Attempts and orders shown; the history has them all."""


def card_of(incident: Incident, decision: Decision, ignored: Sequence[Ignored] = ()) -> str:
    """The whole card, well below the 20 KB that the server takes."""
    node = incident.node
    dry = DRY_RUN if incident.opening.dry else ""
    parts = [
        f"### {dry}{node.name} ({node.cluster})\n\n{headline(decision)}",
        _list("Needed from you", _needed(decision)),
        _list("Answer", answers(incident, decision)),
        _list("What is known", decision.basis.facts),
        _list("Why this is next", decision.reasons),
        _list("Comes next", decision.basis.outlook),
        _list("People said", _orders(incident)),
        _list("Ignored", tuple(f"{_clock(e.at)} {e.what}: {e.why}" for e in ignored)),
        _list("So far", _attempts(incident)),
        f"Facts as of {format_instant(decision.basis.at.replace(microsecond=0))};"
        f" machine {node.machine}, mark {incident.opening.mark.id}",
    ]
    return "\n\n".join(part for part in parts if part)


def headline(decision: Decision) -> str:
    """One sentence: what is going on, and until when."""
    match decision:
        case Act(request):
            return f"**{request.step}**, until {_clock(request.deadline)} at the latest"
        case Wait(stage, until):
            return f"**waiting** ({stage}) until {_clock(until)}"
        case Ask(question, answers, until, expiry):
            said = " or ".join(answers)
            return f"**question**: {question} ({said} by {_clock(until)}, then: {expiry})"
        case HandOff():
            return "**handed to a person**; the node stays held until `release` or `cancel`"
        case Close(end):
            return f"**over**: {end}"
        case _:
            assert_never(decision)


def in_short(decision: Decision) -> str:
    """The headline without marks, of a wait what it waits for: the timeline cuts plain text."""
    if isinstance(decision, Wait):
        why, until = "; ".join(decision.reasons), _clock(decision.until)
        return f"waiting ({decision.stage}): {why}, until {until}"
    return headline(decision).replace("**", "")


def answers(incident: Incident, decision: Decision) -> tuple[str, ...]:
    """The commands by which a person answers, to be copied; empty where nobody is waited for."""
    match decision:
        case Ask(id=ask) if ask:
            said = json.dumps({"actor": "YOUR NAME", "reason": "WHY", "ask": ask})
            ui = f"or in this UI: Send a Signal, `approve` or `deny`, with the input `{said}`"
            return (*(_command(each, incident, ask) for each in decision.answers), ui)
        case Ask(answers=given):
            verbs = [each for each in given if each in tuple(Verb)]
            return tuple(_command(each, incident) for each in verbs)
        case HandOff():
            meant = {
                Verb.RESUME: "look again, and go on",
                Verb.RELEASE: "give the node back on your word",
                Verb.CANCEL: "end it, and repair nothing",
            }
            return tuple(f"{_command(each, incident)}: {words}" for each, words in meant.items())
        case _:
            return ()


def _command(verb: str, incident: Incident, ask: str = "") -> str:
    named = f" --ask {ask}" if ask else ""
    return f'`gpumend {verb} {incident.node.name}{named} --reason "WHY"`'


def _needed(decision: Decision) -> tuple[str, ...]:
    return decision.needs if isinstance(decision, HandOff) else ()


def _orders(incident: Incident) -> tuple[str, ...]:
    return tuple(
        f"{_clock(each.at)} {each.verb}{_about(each)} by {each.actor}: {each.reason}"
        for each in incident.orders[-MOST_LINES:]
    )


def _about(order: Order) -> str:
    """What an order was about, where that is one thing."""
    shown = f", evidence {order.evidence}" if order.evidence else ""
    if order.ask:
        return f" ({order.ask}{shown})"
    return f" ({order.skips})" if order.skips else ""


def _attempts(incident: Incident) -> tuple[str, ...]:
    return tuple(
        f"{_clock(each.ended)} {each.step}: {each.outcome.kind}"
        + (f" ({each.outcome.detail or each.outcome.reason})" if each.outcome.reason else "")
        + (f", {each.tries} times" if each.tries > 1 else "")
        + ("" if each.ours else ", not by us")
        for each in incident.attempts[-MOST_LINES:]
    )


def _list(title: str, lines: tuple[str, ...]) -> str:
    body = "\n".join(f"- {each}" for each in lines)
    return f"**{title}**\n\n{body}" if lines else ""  # or the UI draws no list


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
