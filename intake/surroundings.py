"""What the watcher is given from outside: ports, rules, gates, limits, time and dice."""

from dataclasses import dataclass

from fleet.ports import Budgets, Incidents, Kubernetes
from intake.admission import Gate
from intake.backoff import Backoff, Dice
from intake.clock import Clock
from intake.journal import Journal
from intake.rules import Rules
from intake.settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Passed whole from room to room, so that each names only what it uses.

    `gates` are asked in order before a sick node is held: breaker, cap. Without `budgets` nobody is
    told of the census, and nothing is lent.
    """

    kubernetes: Kubernetes
    incidents: Incidents
    rules: Rules
    cluster: str
    gates: tuple[Gate, ...]
    settings: Settings
    clock: Clock
    dice: Dice
    journal: Journal
    budgets: Budgets | None = None

    def backoff(self) -> Backoff:
        """A new one: each caller backs off for itself."""
        first = self.settings.backoff_first.total_seconds()
        return Backoff(first, self.settings.backoff_limit.total_seconds(), self.dice)
