"""Every metric of the node agent: name, meaning and labels, in one table beside the engine's.

None has a name of dcgm-exporter's: a user's dashboards of DCGM keep working beside ours. Labels are
parts, faults, codes, checks, tools, and the pods whose own faults they are: no node (the scrape
adds it), no serial number, no UUID.
"""

from typing import Final

from fleet.figure import Figure, FigureKind

_C, _G = FigureKind.COUNTER, FigureKind.GAUGE

FAULTS: Final = Figure(
    "gpumend_agent_faults",
    _G,
    "1 for each fault that stands, as the Node's conditions say it; `monitor-silent` is our own",
    ("part", "fault"),
)
CHECKS: Final = Figure(
    "gpumend_agent_checks",
    _C,
    "runs of each check by its worst verdict: `ok`, `unknown`, `fault`; `none` says nothing here",
    ("check", "verdict"),
)
CHECK_SECONDS: Final = Figure(
    "gpumend_agent_check_seconds",
    _G,
    "how long the last run of a check took; NVML is asked once a round, by the first that needs it",
    ("check",),
)
ROUND_AGE: Final = Figure(
    "gpumend_agent_round_age_seconds",
    _G,
    "since the last round of all checks ended; not there before the first",
)
ABANDONED: Final = Figure(
    "gpumend_agent_children_abandoned",
    _C,
    "children that did not end within their limit and were left behind, by tool",
    ("tool",),
)
HANGING: Final = Figure(
    "gpumend_agent_children_hanging",
    _G,
    "1 for a tool whose child was left behind and had not ended in the last round",
    ("tool",),
)
LOG_RECORDS: Final = Figure(
    "gpumend_agent_log_records",
    _C,
    "records of the kernel log: `read`, `lost` (overwritten before we came), `suppressed` (by the"
    " kernel's own rate limits), `foreign` (of user space: no evidence), `garbled`",
    ("kind",),
)
HARMLESS: Final = Figure(
    "gpumend_agent_harmless_lines",
    _C,
    "log lines that hold no node: faults of applications (`application`) and notes (`none`)",
    ("fault", "code"),
)
APPLICATION_FAULTS: Final = Figure(
    "gpumend_agent_application_faults",
    _C,
    "log lines of faults that belong to a job, by the pod whose process did it, under the labels of"
    " dcgm-exporter; `unknown` where nobody can tell; of the 256 kinds that came last",
    ("part", "code", "namespace", "pod"),
)
PATCHES: Final = Figure(
    "gpumend_agent_condition_patches", _C, "patches of the Node's conditions that were taken"
)
RENEWALS: Final = Figure(
    "gpumend_agent_lease_renewals", _C, "renewals of the Lease by which others see that we live"
)
REFUSALS: Final = Figure(
    "gpumend_agent_api_failures", _C, "calls to the API server that failed and are tried again"
)
CHILDREN_CPU: Final = Figure(
    "gpumend_agent_children_cpu_seconds", _C, "seconds of a core spent by children that have ended"
)
REFUSED_SERIES: Final = Figure(
    "gpumend_agent_series_refused", _C, "counts that were dropped, for there were series enough"
)

AGENT_FIGURES: Final = (
    *(FAULTS, CHECKS, CHECK_SECONDS, ROUND_AGE, ABANDONED, HANGING, LOG_RECORDS, HARMLESS),
    *(APPLICATION_FAULTS, PATCHES, RENEWALS, REFUSALS, CHILDREN_CPU, REFUSED_SERIES),
)
