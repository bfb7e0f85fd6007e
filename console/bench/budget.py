"""`gpumend bench budget`: a storm of asks before a real Temporal dev server, and one decision.

Ten thousand asks by two processes, once in a run that may grow and once on a server that asks for
a new run every few events. The promise is judged from the histories by `budget_history`.
"""

import asyncio
from typing import Any

from console.bench import decide_speed, machine
from console.bench.budget_storm import PROCESSES, Storm, storm

ASKS = 10_000
NEW_RUN_EVERY = 6
TARGET_SECONDS = 2.0
TARGET_EVENTS = 1.5
TARGET_NEW_RUNS = 10
TARGET_DECIDE = 200.0
"""Microseconds."""


def measure(asks: int = ASKS) -> dict[str, Any]:
    """Seconds until every ask is answered, history events an ask, grants beyond a maximum."""
    quiet = asyncio.run(storm(asks))
    moving = asyncio.run(storm(asks, new_run_every=NEW_RUN_EVERY))
    decide, points = decide_speed.measure()
    return {
        **_figures("", quiet, asks),
        **_figures("moving_", moving, asks),
        "moving_new_runs": moving.judge.runs - 1,
        "decide_microseconds": round(decide),
        "met": _met(quiet, asks)
        and _met(moving, asks)
        and moving.judge.runs > TARGET_NEW_RUNS
        and decide <= TARGET_DECIDE,
        "input": {
            "asks": asks,
            "processes": PROCESSES,
            "new_run_every_events": NEW_RUN_EVERY,
            "decisions": points,
        },
        "targets": {
            "seconds": TARGET_SECONDS,
            "events_an_ask": TARGET_EVENTS,
            "beyond_maximum": 0,
            "new_runs": TARGET_NEW_RUNS,
            "decide_microseconds": TARGET_DECIDE,
        },
        "machine": machine.describe(),
    }


def _figures(prefix: str, found: Storm, asks: int) -> dict[str, Any]:
    return {
        f"{prefix}seconds": round(found.seconds, 2),
        f"{prefix}over_floor": round(found.seconds / found.floor_seconds, 2),
        f"{prefix}events_an_ask": round(found.judge.events / asks, 4),
        f"{prefix}granted_at_once": found.granted,
        f"{prefix}granted_in_all": found.judge.grants,
        f"{prefix}beyond_maximum": len(found.judge.broken),
    }


def _met(found: Storm, asks: int) -> bool:
    fast = found.seconds <= TARGET_SECONDS
    small = found.judge.events <= TARGET_EVENTS * asks
    return fast and small and not found.judge.broken
