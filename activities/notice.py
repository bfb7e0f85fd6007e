"""What a notification says: a generic JSON body, with `text` as Slack and its like show it. Pure.

Unlike Events it may name Pods and say what was found; serial numbers and logs stay out. Where it
goes is `adapters/webhook`, how often `notifier`.
"""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from activities.node_event import name_faults
from fleet.instant import format_instant
from fleet.order import ANSWERS
from fleet.telling import Matter, Telling

LINE_LIMIT = 500
"""Characters of a line."""
MOST_LINES = 12
NAMED_IN_DIGEST = 25
"""Notices that a digest names; of the others it gives the count."""

HAND_OFF_ANSWERS = ("resume", "release", "cancel")


@dataclass(frozen=True, slots=True)
class Notice:
    """One message for people. `key` is equal for the same thing said again."""

    key: str
    matter: Matter
    title: str
    node: str = ""
    cluster: str = ""
    incident: str = ""
    workflow_id: str = ""
    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    until: datetime | None = None


def notice_of(telling: Telling) -> Notice:
    """A question, a hand-off or a fault of one node."""
    name, faults = telling.node.name, name_faults(telling.faults)
    about = f" ({faults})" if faults else ""
    title = {
        Matter.ASK: f"{name} asks: {telling.lines[0] if telling.lines else 'go on?'}",
        Matter.HAND_OFF: f"{name} is handed to a person{about}",
        Matter.FAULT: f"{name} has a fault that nothing is held for{about}",
        Matter.STORM: f"too much is sick at once{about}",
    }[telling.matter]
    return Notice(
        key=telling.key,
        matter=telling.matter,
        title=title[:LINE_LIMIT],
        node=name,
        cluster=telling.node.cluster,
        incident=telling.incident,
        workflow_id="" if telling.matter is Matter.FAULT else telling.workflow_id,
        lines=tuple(each[:LINE_LIMIT] for each in _lines(telling)[:MOST_LINES]),
        commands=_commands(telling),
        until=telling.until,
    )


def _lines(telling: Telling) -> tuple[str, ...]:
    if telling.matter is not Matter.ASK:
        return (*telling.lines, *telling.reasons)
    faults = name_faults(telling.faults)
    late = f"no answer by {_clock(telling.until)}: {telling.expiry}" if telling.until else ""
    return tuple(each for each in (*telling.lines[1:], faults, *telling.reasons, late) if each)


def _commands(telling: Telling) -> tuple[str, ...]:
    """What a person types to answer; the reason is theirs to write."""
    verbs = telling.answers if telling.matter is Matter.ASK else ()
    if telling.matter is Matter.HAND_OFF:
        verbs = HAND_OFF_ANSWERS
    return tuple(_command(verb, telling) for verb in verbs)


def _command(verb: str, telling: Telling) -> str:
    words = ["gpumend", verb, telling.node.name, "--cluster", telling.node.cluster]
    if verb in ANSWERS and telling.ask:
        words += ["--ask", telling.ask]
    return f"{shlex.join(words)} --reason '…'"


def body_of(notice: Notice) -> dict[str, Any]:
    """The JSON of one notice."""
    return {
        "text": _text(notice),
        "key": notice.key,
        "matter": notice.matter.value,
        "title": notice.title,
        "cluster": notice.cluster,
        "node": notice.node,
        "incident": notice.incident,
        "workflow_id": notice.workflow_id,
        "lines": list(notice.lines),
        "commands": list(notice.commands),
        "until": format_instant(notice.until) if notice.until else None,
    }


def digest_of(notices: Sequence[Notice]) -> dict[str, Any]:
    """The JSON of many at once: how many of which matter, and the first of them by title."""
    counts = Counter(each.matter.value for each in notices)
    said = ", ".join(f"{count} {matter}" for matter, count in sorted(counts.items()))
    named = [f"• {each.title}" for each in notices[:NAMED_IN_DIGEST]]
    more = len(notices) - len(named)
    rest = [f"… and {more} more: gpumend incidents"] if more > 0 else []
    title = f"gpumend: {len(notices)} things to tell ({said})"
    return {
        "text": "\n".join((title, *named, *rest)),
        "key": f"digest-{notices[0].key}",
        "matter": "digest",
        "title": title,
        "counts": dict(counts),
        "notices": [_short(each) for each in notices[:NAMED_IN_DIGEST]],
    }


def _short(notice: Notice) -> dict[str, Any]:
    return {
        "key": notice.key,
        "matter": notice.matter.value,
        "title": notice.title,
        "node": notice.node,
        "workflow_id": notice.workflow_id,
    }


def _text(notice: Notice) -> str:
    answers = [f"`{each}`" for each in notice.commands]
    run = [f"run: {notice.workflow_id}"] if notice.workflow_id else []
    return "\n".join((notice.title, *(f"• {each}" for each in notice.lines), *answers, *run))


def _clock(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC") if at else ""
