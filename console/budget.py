"""`gpumend budget show|freeze|thaw`: how many nodes may be disrupted at once, and who holds.

Exit status: 0 done, 1 refused, 2 there is no budget yet or bad usage, 3 Temporal is away.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_jsonable_python

from activities.adapters.temporal_reading import TemporalReading
from console import exits, servers
from console.order import add_who_and_why
from console.table import clock, length, table
from console.which import plain
from fleet import names
from fleet.errors import NotFound
from fleet.order import Said
from policies.ledger_view import LedgerView, NodeRow, ScopeRow

SHOW, FREEZE, THAW = "show", "freeze", "thaw"
_UPDATES = {FREEZE: names.UPDATE_FREEZE, THAW: names.UPDATE_THAW}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's own subcommands."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    purposes = {
        SHOW: "scopes, leases, who waits and why",
        FREEZE: "grant nothing more; leases that are out stay out",
        THAW: "grant again",
    }
    for name, purpose in purposes.items():
        action = actions.add_parser(name, help=purpose, description=purpose)
        if name != SHOW:
            add_who_and_why(action)
        action.add_argument("--cluster", type=plain, default=servers.default_cluster())
        action.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """Run one action."""
    return servers.run(f"budget {arguments.action}", lambda: _run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    reading = await servers.need_temporal()
    try:
        answer = await _answer(reading, arguments)
    except NotFound as problem:
        words = (
            f"cluster {arguments.cluster} has no budget yet: the first ask for a lease starts it"
        )
        raise NotFound(problem.code, problem.reason, words) from problem
    print(json.dumps(as_json(answer)) if arguments.json else "\n".join(as_text(answer)))
    return exits.OK


async def _answer(reading: TemporalReading, arguments: argparse.Namespace) -> LedgerView | str:
    workflow_id = names.budget_workflow_id(arguments.cluster)
    if arguments.action == SHOW:
        now = datetime.now(UTC)
        return await reading.ask(workflow_id, names.QUERY_LEDGER, LedgerView, now)
    said = Said(arguments.actor, arguments.reason)
    return await reading.order(workflow_id, _UPDATES[arguments.action], said)


def as_json(answer: LedgerView | str) -> Any:
    """For programs."""
    return {"answer": answer} if isinstance(answer, str) else to_jsonable_python(answer)


def as_text(answer: LedgerView | str) -> Iterator[str]:
    """For people."""
    if isinstance(answer, str):
        yield answer
        return
    yield from _head(answer)
    yield from _scopes(answer.scopes)
    now = answer.at
    yield from _rows("Leases", "LENT", answer.leases, now)
    yield from _rows("Waiting", "FOR", answer.queue, now)
    yield from _rows("With people", "FOR", answer.with_people, now)


def _head(view: LedgerView) -> Iterator[str]:
    counts = f"{view.leased} leases, {view.waiting} waiting, {view.handed_off} with people"
    yield counts + (f", {view.unanswered} unanswered for long" if view.unanswered else "")
    if view.freeze:
        frozen = view.freeze
        yield f"FROZEN since {clock(frozen.at)} UTC by {frozen.actor}: {frozen.reason}"
    if view.stopped:
        yield f"nothing is granted: {view.stopped}"
    if view.census_at:
        yield f"census of {clock(view.census_at)} UTC"


def _scopes(rows: Sequence[ScopeRow]) -> Iterator[str]:
    if not rows:
        return
    head = ("SCOPE", "MAX", "LEASED", "DOWN", "WITH PEOPLE", "WAITING", "SIZE", "")
    yield ""
    yield table(
        head,
        [
            (
                each.scope,
                _or_dash(each.maximum),
                str(each.leased),
                str(each.down),
                str(each.handed_off),
                str(each.waiting),
                _or_dash(each.size),
                each.barred,
            )
            for each in rows
        ],
    )


def _rows(title: str, since: str, rows: Sequence[NodeRow], now: datetime) -> Iterator[str]:
    if not rows:
        return
    yield ""
    cells = [(each.node, length(now - each.since), each.why) for each in rows]
    yield table((title.upper(), since, "WHY" if any(each.why for each in rows) else ""), cells)


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
