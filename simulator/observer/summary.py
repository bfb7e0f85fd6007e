"""What the observer says at the end of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from simulator.observer.availability import availability
from simulator.observer.disruption import most
from simulator.observer.incidents import ENDS, Incident, incidents, unended
from simulator.observer.promise import Promises, Violation, judge
from simulator.observer.rules import ALL
from simulator.observer.transcript import Write


@dataclass(frozen=True, slots=True)
class Summary:
    """The observer's findings; `node_availability` is a share of 1."""

    incidents: tuple[Incident, ...]
    max_disrupted: Mapping[str, int]
    violations: tuple[Violation, ...]
    node_availability: float

    @property
    def ended(self) -> dict[str, int]:
        """Incidents by their end, every end named."""
        counted = Counter(each.end for each in self.incidents)
        return {end: counted[end] for end in ENDS}


def summarize(writes: list[Write], promises: Promises) -> Summary:
    """Judge a finished run."""
    violations = [*judge(writes, promises, ALL.values()), *unended(writes)]
    return Summary(
        incidents=tuple(incidents(writes)),
        max_disrupted=most(writes, promises),
        violations=tuple(violations),
        node_availability=availability(writes),
    )
