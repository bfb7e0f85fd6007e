"""`gpumend incidents`: which nodes have an incident, where it stands, what stops it.

The list is Temporal's, which lags behind by about a second; what comes next is asked of each run.
Exit status: 0 listed (even if there is none), 2 bad usage, 3 Temporal is away.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_jsonable_python

from activities.adapters.temporal_reading import Run, TemporalReading
from console import exits, servers
from console.decision_words import comes, why
from console.table import cut, due, length, table, terminal_width
from console.which import plain
from fleet.closing import Closing
from fleet.errors import NotFound, Refused, Transient
from fleet.names import INCIDENT_WORKFLOW, QUERY_PLAN
from fleet.step import Step
from workflows.node_remediation import Plan

MOST = 500
"""Runs that are listed; the rest is counted."""
MOST_ASKED = 100
"""Open runs that are asked what comes next: each asks a worker."""
AT_ONCE = 8
STAGES = (*(each.value for each in Step), "ask")
"""What the list calls a stage: a step, or a question."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="closed ones too, while Temporal keeps")
    parser.add_argument("--pool", type=plain, help="only nodes of this pool")
    parser.add_argument("--step", choices=STAGES, metavar="STEP", help=f"one of {' '.join(STAGES)}")
    parser.add_argument("--cluster", type=plain, default=servers.default_cluster())
    parser.add_argument("--json", action="store_true", help="print JSON, only that")


def run(arguments: argparse.Namespace) -> int:
    """List them."""
    return servers.run("incidents", lambda: _run(arguments))


@dataclass(frozen=True, slots=True)
class Row:
    """One incident: its run, and what its workflow said of itself, if it was asked and did."""

    run: Run
    plan: Plan | None = None
    closing: Closing | None = None


async def _run(arguments: argparse.Namespace) -> int:
    reading = await servers.need_temporal()
    query = query_of(arguments)
    runs = await reading.runs(query, MOST)
    hidden = await reading.count(query) - len(runs) if len(runs) >= MOST else 0
    rows = await _asked(reading, runs)
    now = datetime.now(UTC)
    if arguments.json:
        print(json.dumps([as_json(each) for each in rows]))
    else:
        print(as_table(rows, now, terminal_width(), closed=arguments.all))
    if hidden > 0:
        print(f"gpumend incidents: {hidden} more are not shown", file=sys.stderr)
    return exits.OK


def query_of(arguments: argparse.Namespace) -> str:
    """The list filter, as it may be typed into the Temporal UI."""
    terms = [f"WorkflowType = '{INCIDENT_WORKFLOW}'", f"Cluster = '{arguments.cluster}'"]
    if arguments.all:
        terms.append("ExecutionStatus != 'ContinuedAsNew'")
    else:
        terms.append("ExecutionStatus = 'Running'")
    if arguments.pool:
        terms.append(f"Pool = '{arguments.pool}'")
    if arguments.step:
        terms.append(f"Step = '{arguments.step}'")
    return " AND ".join(terms)


async def _asked(reading: TemporalReading, runs: Sequence[Run]) -> list[Row]:
    """Ask each run, few at a time; once a worker does not answer, nobody else is asked."""
    gate, silent = asyncio.Semaphore(AT_ONCE), asyncio.Event()

    async def ask(run: Run) -> Row:
        async with gate:
            if silent.is_set():
                return Row(run)
            try:
                return await _one(reading, run)
            except Transient:
                silent.set()
            except (NotFound, Refused):
                pass  # closed meanwhile, or a run that cannot be replayed: the list still has it
            return Row(run)

    asked = await asyncio.gather(*(ask(each) for each in runs[:MOST_ASKED]))
    return [*asked, *(Row(each) for each in runs[MOST_ASKED:])]


async def _one(reading: TemporalReading, run: Run) -> Row:
    if not run.open:
        return Row(run, closing=await reading.closing(run))
    return Row(run, plan=await reading.ask(run.workflow_id, QUERY_PLAN, Plan))


def as_table(rows: Sequence[Row], now: datetime, width: int | None, *, closed: bool) -> str:
    """For people."""
    if not rows:
        return "no incident" if closed else "no open incident"
    head = ("NODE", "POOL", "FAULT", "STAGE", "SINCE", "DUE", "WHAT COMES, AND WHAT STOPS IT")
    ordered = sorted(rows, key=lambda each: (not each.run.open, each.run.opened))
    return table(head, [_cells(each, now) for each in ordered], width)


def _cells(row: Row, now: datetime) -> tuple[str, ...]:
    run, said = row.run, row.run.attributes
    until = said.get("DueAt")
    return (
        str(said.get("Node", run.workflow_id)),
        str(said.get("Pool", "-")),
        str(said.get("Fault", "-")),
        str(said.get("Step", "-")) if run.open else _end(row),
        f"{length(now - run.opened)} ago",
        due(until, now) if run.open and until else "-",
        cut(_comes(row), 300),
    )


def _end(row: Row) -> str:
    return row.closing.end.value if row.closing else row.run.status


def _comes(row: Row) -> str:
    if row.closing:
        return "; ".join(row.closing.reasons)
    if row.plan is None:
        return "" if not row.run.open else "(no worker answered)"
    reasons = why(row.plan.next)
    return ": ".join(filter(None, (comes(row.plan.next), "; ".join(reasons[:2]))))


def as_json(row: Row) -> dict[str, Any]:
    """For programs."""
    run, said = row.run, row.run.attributes
    plan = row.plan
    entry = {
        "node": said.get("Node"),
        "machine": said.get("Machine"),
        "pool": said.get("Pool"),
        "rack": said.get("Rack"),
        "fault": said.get("Fault"),
        "stage": said.get("Step"),
        "stages": said.get("Steps") or [],
        "since": run.opened,
        "due": said.get("DueAt"),
        "open": run.open,
        "status": run.status,
        "end": row.closing.end if row.closing else None,
        "closed": run.closed,
        "comes": plan.next if plan else None,
        "blocks": why(plan.next) if plan else None,
        "facts_observed": plan.facts_observed if plan else None,
        "workflow_id": run.workflow_id,
        "run_id": run.run_id,
        "mark": run.mark,
    }
    answer: dict[str, Any] = to_jsonable_python(entry)
    return answer
