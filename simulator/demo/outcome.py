"""The end of a run: what the observer found, in words or as JSON, and whether all is well."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from simulator.demo.scenario import Scenario
from simulator.observer.promise import Promises
from simulator.observer.rules import ALL
from simulator.observer.summary import Summary


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """`amiss` is what did not go as scripted; promises that were broken are in the summary."""

    scenario: Scenario
    summary: Summary
    promises: Promises
    amiss: tuple[str, ...]
    seconds: float

    @property
    def well(self) -> bool:
        """Whether every fault ended as scripted and no promise was broken."""
        return not self.amiss and not self.summary.violations


def as_json(outcome: RunOutcome) -> dict[str, Any]:
    """The summary for programs."""
    summary = outcome.summary
    return {
        "seed": outcome.scenario.seed,
        "nodes": outcome.scenario.fleet.size,
        "faults": len(outcome.scenario.faults),
        "incidents": len(summary.incidents),
        "ended": summary.ended,
        "max_disrupted": dict(summary.max_disrupted),
        "budget": dict(outcome.promises.budget),
        "violations": [
            {
                "rule": each.rule,
                "when": each.when.astimezone(UTC).isoformat().replace("+00:00", "Z"),
                "what": each.what,
            }
            for each in summary.violations
        ],
        "node_availability": summary.node_availability,
    }


def in_words(outcome: RunOutcome) -> str:
    """The summary for people."""
    summary = outcome.summary
    lines = [
        "",
        f"After {outcome.seconds:.0f} s, by the audit and the provider's journal alone:",
        f"  faults      {_scripted(outcome.scenario)}",
        f"  incidents   {_ends(summary)}",
        f"  disrupted   {_disrupted(summary.max_disrupted, outcome.promises.budget)}",
        f"  available   {summary.node_availability:.1%} of node time",
        f"  promises    {len(ALL) + 1 - _broken(summary)} of {len(ALL) + 1} kept",
    ]
    lines += [f"  BROKEN      {each.rule}: {each.what}" for each in summary.violations]
    lines += [f"  AMISS       {each}" for each in outcome.amiss]
    lines.append("  All ended as scripted." if outcome.well else "  This run failed.")
    return "\n".join(lines)


def _scripted(scenario: Scenario) -> str:
    told = (f"{each.node} {each.kind}" for each in scenario.faults)
    return f"{len(scenario.faults)} ({', '.join(told)})"


def _ends(summary: Summary) -> str:
    ended = ", ".join(f"{count} {end}" for end, count in summary.ended.items() if count)
    return f"{len(summary.incidents)} ({ended or 'none ended'})"


def _disrupted(most: Mapping[str, int], budget: Mapping[str, int]) -> str:
    told = (f"{scope} {count} of {budget.get(scope, '-')}" for scope, count in most.items())
    return f"{', '.join(told)} at most at once"


def _broken(summary: Summary) -> int:
    return len({each.rule for each in summary.violations})
