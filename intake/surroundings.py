"""What the watcher is given from outside: ports, rules, gates, limits, time and dice."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

from fleet.fault import Fault
from fleet.node import NodeIdentity
from fleet.ports import Budgets, Incidents, Kubernetes, Proofs
from intake.admission import Gate
from intake.backoff import Backoff, Dice
from intake.clock import Clock
from intake.journal import Journal
from intake.rules import Rules
from intake.settings import Settings
from policies.storm import Storm

Announce = Callable[[Storm], Awaitable[None]]
"""Tells people of a storm; raises the errors of `fleet.errors` where it has to be tried again."""

Complain = Callable[[NodeIdentity, str, str], Coroutine[None, None, None]]
"""Tells the people of a node, with a reason in CamelCase and a sentence; never raises."""


TellFault = Callable[[NodeIdentity, Fault], Coroutine[None, None, None]]
"""Tells people of a fault that no node is held for; never raises."""


async def log_only(storm: Storm) -> None:
    """The announcement where nobody listens: the log has it already."""
    del storm


async def to_nobody(node: NodeIdentity, reason: str, text: str) -> None:
    """The complaint where nobody listens: the log has it already."""
    del node, reason, text


async def of_nothing(node: NodeIdentity, fault: Fault) -> None:
    """Nobody listens: the log has it already."""
    del node, fault


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Passed whole from room to room, so that each names only what it uses.

    `gates` are asked in order before a sick node is held, after the breaker and the cap. Without
    `budgets` nobody is told of the census, and nothing is lent; without `proofs` no node is proven.
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
    announce: Announce = log_only
    complain: Complain = to_nobody
    tell: TellFault = of_nothing
    proofs: Proofs | None = None

    def backoff(self) -> Backoff:
        """A new one: each caller backs off for itself."""
        first = self.settings.backoff_first.total_seconds()
        return Backoff(first, self.settings.backoff_limit.total_seconds(), self.dice)
