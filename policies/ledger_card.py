"""The ledger as the card of the budget's run: what the Temporal UI shows. Markdown, bounded."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from policies.ledger_view import LedgerView, NodeRow, ScopeRow

ROWS = 40
"""Rows of each kind on the card."""
BYTES = 19_000
"""The server takes twenty thousand."""


def card(view: LedgerView) -> str:
    """The view in words; cut by whole lines where there is too much of it."""
    lines: list[str] = []
    left = BYTES
    for line in _lines(view):
        left -= len(line.encode()) + 1
        if left < 0:
            lines.append("…")
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(view: LedgerView) -> Iterator[str]:
    counts = f"{view.leased} lent, {view.waiting} waiting, {view.handed_off} with people"
    yield f"### {counts}"
    yield f"At {_time(view.at)}; {_census(view)}."
    if view.stopped:
        yield f"\n**Nothing is granted**: {view.stopped}"
    if view.unanswered:
        yield f"\n**{view.unanswered} asks wait for longer than they should**"
    yield from _scopes(view.scopes)
    yield from _nodes("Lent", view.leased, view.leases)
    yield from _nodes("Waiting, the next one first", view.waiting, view.queue)
    yield from _nodes("With people", view.handed_off, view.with_people)


def _census(view: LedgerView) -> str:
    return f"fleet counted at {_time(view.census_at)}" if view.census_at else "fleet never counted"


def _scopes(rows: Iterable[ScopeRow]) -> Iterator[str]:
    shown = list(rows)[:ROWS]
    if not shown:
        return
    yield "\n| scope | at once | lent | down | with people | waiting | |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for each in shown:
        most = "" if each.maximum is None else each.maximum
        numbers = (most, each.leased, each.down, each.handed_off, each.waiting)
        barred = f"breaker open: {each.barred}" if each.barred else ""
        yield f"| {each.scope} | {' | '.join(str(number) for number in numbers)} | {barred} |"


def _nodes(title: str, count: int, rows: Iterable[NodeRow]) -> Iterator[str]:
    shown = list(rows)[:ROWS]
    if not shown:
        return
    yield f"\n**{title}**\n"
    for each in shown:
        why = f": {each.why}" if each.why else ""
        yield f"- {each.node}, since {_time(each.since)}{why}"
    if count > len(shown):
        yield f"- and {count - len(shown)} more"


def _time(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%SZ") if at else "-"
