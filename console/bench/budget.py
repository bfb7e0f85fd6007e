"""`gpumend bench budget`: a storm of asks before a real Temporal dev server, one decision, and one
incident of a simulated machine.

Ten thousand asks by two processes, once in a run that may grow and once on a server that asks for
a new run every few events. The promise is judged from the histories by `budget_history`. Seconds
are by the clock; `core_seconds` are those on any core, of the server, too.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from console.bench import decide_speed, incident_stage, machine
from console.bench.budget_storm import PROCESSES, Storm, storm

ASKS = 10_000
NEW_RUN_EVERY = 6
IN_A_BATCH = 500
"""Asks in one update while the run moves: fewer, since ten updates would not make it move ten
times."""
AT_MOST: Mapping[str, float] = {
    "seconds": 2.0,
    "events_an_ask": 1.5,
    "beyond_maximum": 0,
    "moving_seconds": 2.0,
    "moving_events_an_ask": 1.5,
    "moving_beyond_maximum": 0,
    "decide_microseconds": 200,
    "incident_events": 100,
    "incident_actions": 25,
    "incident_calls": 40,
}
NEW_RUNS = 10


def measure(asks: int = ASKS) -> dict[str, Any]:
    """Every figure, and in `missed` the names of those that are not as they should be."""
    quiet = asyncio.run(storm(asks))
    moving = asyncio.run(storm(asks, new_run_every=NEW_RUN_EVERY, in_a_batch=IN_A_BATCH))
    incident = asyncio.run(incident_stage.measure())
    decide, dearest, decisions = decide_speed.measure()
    figures = {
        **_figures("", quiet, asks),
        **_figures("moving_", moving, asks),
        "moving_new_runs": moving.judge.runs - 1,
        "decide_microseconds": round(decide),
        "decide_dearest_microseconds": round(dearest),
        "incident_events": incident.events,
        "incident_actions": incident.actions,
        "incident_calls": incident.calls.all,
        "incident_reads": incident.calls.reads,
        "incident_writes": incident.calls.writes,
        "incident_watches": incident.calls.watches,
    }
    missed = [name for name, most in AT_MOST.items() if figures[name] > most]
    missed += ["moving_new_runs"] * (moving.judge.runs <= NEW_RUNS)
    return {
        **figures,
        "missed": missed,
        "met": not missed,
        "input": {
            "asks": asks,
            "processes": PROCESSES,
            "moving_new_run_every_events": NEW_RUN_EVERY,
            "moving_asks_in_an_update": IN_A_BATCH,
            "decisions": decisions,
            "incident_steps": list(incident.steps),
            "incident_look_again": "as shipped",
            "incident_calls_during": incident.calls.during,
            "incident_calls_of": incident.calls.of_what,
        },
        "targets": {**AT_MOST, "moving_new_runs": NEW_RUNS},
        "machine": machine.describe(),
    }


def _figures(prefix: str, found: Storm, asks: int) -> dict[str, float]:
    return {
        f"{prefix}seconds": round(found.seconds, 2),
        f"{prefix}over_floor": round(found.seconds / found.floor_seconds, 2),
        f"{prefix}core_seconds": round(found.core_seconds, 2),
        f"{prefix}core_over_floor": round(found.core_seconds / found.floor_core_seconds, 2),
        f"{prefix}events_an_ask": round(found.judge.events / asks, 4),
        f"{prefix}granted_at_once": found.granted,
        f"{prefix}granted_in_all": found.judge.grants,
        f"{prefix}beyond_maximum": len(found.judge.broken),
    }
