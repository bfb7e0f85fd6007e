"""The status card: what an operator reads in the Temporal UI, without our documents.

Markdown; why the node is held, what comes next, until when, what blocks it, who has said what.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from fleet.decision import Act, Ask, Close, Decision, HandOff, Wait
from fleet.incident import Incident
from fleet.instant import format_instant
from workflows.operators import Ignored

MOST_LINES = 8
"""Attempts and orders shown; the history has them all."""


def card_of(incident: Incident, decision: Decision, ignored: Sequence[Ignored] = ()) -> str:
    """The whole card, well below the 20 KB that the server takes."""
    node = incident.node
    parts = [
        f"### {node.name} ({node.cluster})\n{headline(decision)}",
        _list("Why", decision.basis.facts),
        _list("Because", decision.reasons),
        _list("Needed from you", _needed(decision)),
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


def _needed(decision: Decision) -> tuple[str, ...]:
    if isinstance(decision, HandOff):
        answers = "then: resume (looks again first), release (give it back) or cancel"
        return (*decision.needs, answers)
    return ()


def _orders(incident: Incident) -> tuple[str, ...]:
    return tuple(
        f"{_clock(each.at)} {each.verb} by {each.actor}: {each.reason}"
        for each in incident.orders[-MOST_LINES:]
    )


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
    return f"**{title}**\n{body}" if lines else ""


def _clock(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
