"""Every metric of the engine: its name, meaning and labels, in one table.

The code counts by these, `docs/metrics.md` is tested against them, and dashboards and alert rules
may use no other. Labels are bounded: no node, no incident. Times are in seconds, shares 0 to 1.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class FigureKind(StrEnum):
    """COUNTER only grows, and begins at nought with its process; GAUGE is how it stands now."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric; a counter's `name` is without the `_total` that it is exposed with."""

    name: str
    kind: FigureKind
    text: str
    labels: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """The name that is queried."""
        return f"{self.name}_total" if self.kind is FigureKind.COUNTER else self.name


_C, _G, _H = FigureKind.COUNTER, FigureKind.GAUGE, FigureKind.HISTOGRAM

OPENED: Final = Figure(
    "gpumend_incidents_opened", _C, "incidents whose first step was asked for", ("fault",)
)
ENDED: Final = Figure("gpumend_incidents_ended", _C, "incidents that are over", ("fault", "end"))
REACHED: Final = Figure(
    "gpumend_incident_reached_seconds",
    _H,
    "from the mark on the node until a step succeeded for the first time in the incident",
    ("step",),
)
STEP: Final = Figure(
    "gpumend_step_duration_seconds",
    _H,
    "one run of a step's activity, by how it ended; a try that Temporal repeats is not counted",
    ("step", "outcome"),
)
PROOFS: Final = Figure(
    "gpumend_proofs", _C, "proofs of new, returned and idle nodes that are over, by how", ("end",)
)
PROOF_SECONDS: Final = Figure(
    "gpumend_proof_seconds", _H, "from the start of a proof to its end, tries and pauses", ("end",)
)
EVENTS_LOST: Final = Figure(
    "gpumend_events_lost", _C, "Kubernetes Events that could not be written and were given up"
)
NOTIFICATIONS: Final = Figure(
    "gpumend_notifications", _C, "messages to the webhook, a digest being one", ("result",)
)
OPEN: Final = Figure(
    "gpumend_incidents_open",
    _G,
    "open incidents by what they are at (`ask` and `hand-off` wait for a person)",
    ("step",),
)
LEASES: Final = Figure(
    "gpumend_leases",
    _G,
    "nodes of a scope that are lent (`leased`), wait for a lease (`waiting`), are with people"
    " (`handed-off`) or down for other reasons (`down`); the 100 busiest scopes",
    ("scope", "state"),
)
LEASE_LIMIT: Final = Figure(
    "gpumend_lease_limit", _G, "how many nodes of a scope may be lent at once", ("scope",)
)
BREAKER: Final = Figure(
    "gpumend_breaker_open", _G, "1 for a scope whose breaker bars new leases", ("scope",)
)
UNANSWERED: Final = Figure(
    "gpumend_lease_asks_unanswered", _G, "asks for a lease that wait longer than they should"
)
STOPPED: Final = Figure(
    "gpumend_grants_stopped", _G, "1 while nothing is lent at all (freeze, or no fresh census)"
)
CENSUS_AGE: Final = Figure(
    "gpumend_census_age_seconds", _G, "age of the watcher's last census as the budget has it"
)
FIGURES_AGE: Final = Figure(
    "gpumend_figures_age_seconds",
    _G,
    "how long ago this process last read Temporal for the gauges above; old figures are left out",
)
LEADING: Final = Figure("gpumend_watcher_leading", _G, "1 in the watcher that leads, 0 in others")
NODES: Final = Figure(
    "gpumend_nodes",
    _G,
    "nodes by how they stand, each in one state: serving, held, not-ready, unproven, cordoned",
    ("state",),
)
MACHINES_OUT: Final = Figure(
    "gpumend_machines_out", _G, "machines that are out of service for hardware"
)
AVAILABILITY: Final = Figure(
    "gpumend_node_availability_ratio",
    _G,
    "share of nodes in service, in both readings: `serving` and `machines`",
    ("reading",),
)

WATCHER_WRITES: Final = Figure(
    "gpumend_watcher_writes", _C, "patches of nodes by the watcher that leads", ("act",)
)
HOLD_DELAY: Final = Figure(
    "gpumend_watcher_hold_delay_seconds", _H, "from a fault's first sight to the hold of its node"
)
NOT_HELD: Final = Figure(
    "gpumend_watcher_not_held",
    _G,
    "sick nodes that are not held, by why (`paused`, `cool-down`, `breaker-open`, `last-node` …)",
    ("reason",),
)
WATCHER_QUEUE: Final = Figure(
    "gpumend_watcher_queue",
    _G,
    "nodes that wait for the watcher: `writes`, `deliveries`",
    ("queue",),
)
BREAKER_PHASE: Final = Figure(
    "gpumend_watcher_breakers",
    _G,
    "breakers of a scope that are not simply closed, by phase; one for the scope and one for each"
    " fault that newborn nodes share",
    ("scope", "phase"),
)
CENSUS_TOLD: Final = Figure(
    "gpumend_watcher_census_told_seconds", _G, "how long ago the watcher last told a census"
)
WATCHER_TROUBLES: Final = Figure(
    "gpumend_watcher_troubles",
    _C,
    "calls of the watcher that failed and are repeated, watches that broke, by what",
    ("what",),
)

FIGURES: Final = (
    *(OPENED, ENDED, REACHED, STEP, PROOFS, PROOF_SECONDS, EVENTS_LOST, NOTIFICATIONS, OPEN),
    *(LEASES, LEASE_LIMIT, BREAKER, UNANSWERED, STOPPED, CENSUS_AGE, FIGURES_AGE),
    *(LEADING, NODES, MACHINES_OUT, AVAILABILITY),
    *(WATCHER_WRITES, HOLD_DELAY, NOT_HELD, WATCHER_QUEUE, BREAKER_PHASE, CENSUS_TOLD),
    WATCHER_TROUBLES,
)

BUCKETS: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
"""Seconds: from one call to a day of waiting for people."""
