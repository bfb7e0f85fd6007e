"""What of the agent's work becomes figures: the log, the checks, the faults. Pure but for them."""

from collections.abc import Mapping, Sequence

from fleet.agent_figure import (
    ABANDONED,
    APPLICATION_FAULTS,
    CHECK_SECONDS,
    CHECKS,
    FAULTS,
    HANGING,
    HARMLESS,
    LOG_RECORDS,
)
from fleet.fault import Fault
from fleet.finding import WORST_FIRST
from probes.agent.figures import Figures, Labels
from probes.agent.rounds import Timed
from probes.applications import Applications
from probes.child import Tool
from probes.kmsg import Cursor

SAYS_NOTHING = "none"
_SUPPRESSED = b" suppressed"


def count_check(figures: Figures, timed: Timed) -> None:
    """One run of one check, by its worst verdict."""
    said = [each.verdict for each in timed.findings]
    worst = next((each.value for each in WORST_FIRST if each in said), SAYS_NOTHING)
    figures.count(CHECKS, timed.check, worst)


def count_round(figures: Figures, timed: Sequence[Timed], tools: Mapping[str, Tool]) -> None:
    """A round that is over: how long each check took, and which tools hang."""
    figures.round_ended()
    figures.level(CHECK_SECONDS, {(each.check,): each.seconds for each in timed})
    hanging = {name: tool.outstanding is not None for name, tool in dict(tools).items()}
    figures.level(HANGING, {(name,): 1 for name, hangs in hanging.items() if hangs})
    abandoned = {(name,): tool.abandoned for name, tool in dict(tools).items()}
    figures.level(ABANDONED, {name: count for name, count in abandoned.items() if count})


def count_faults(figures: Figures, faults: Sequence[Fault]) -> None:
    """The faults that stand now."""
    figures.level(FAULTS, {(each.part, each.name.value): 1 for each in faults})


def count_harmless(figures: Figures, moved_nothing: Mapping[tuple[str, str], int]) -> None:
    """The log's lines that moved nothing, since we began."""
    figures.level(HARMLESS, {(name, code): n for (name, code), n in moved_nothing.items()})


def count_applications(figures: Figures, applications: Applications) -> None:
    """The faults that belong to jobs, since we began, by the names of their pods."""
    named = applications.by_name().items()
    levels: dict[Labels, float] = {
        (part, code, pod.namespace, pod.name): count for (part, code, pod), count in named
    }
    figures.level(APPLICATION_FAULTS, levels)


def missed(cursor: Cursor) -> dict[str, int]:
    """What was no evidence so far, by kind."""
    return {"lost": cursor.lost, "foreign": cursor.foreign, "garbled": cursor.garbled}


def count_log(
    figures: Figures, raw: Sequence[bytes], before: Mapping[str, int], after: Mapping[str, int]
) -> None:
    """A batch of the log; `before` and `after` are what was `missed`."""
    figures.count(LOG_RECORDS, "read", by=len(raw))
    suppressed = sum(_SUPPRESSED in each for each in raw)
    for kind, count in (("suppressed", suppressed), *((k, after[k] - before[k]) for k in after)):
        if count > 0:
            figures.count(LOG_RECORDS, kind, by=count)
