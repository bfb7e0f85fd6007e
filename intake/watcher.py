"""The watcher: node conditions in, admitted incidents out. What worker.py starts.

    rules = PolicyRules(policy)
    watcher = Watcher(kubernetes, incidents, rules, cluster="prod", identity="pod-7f3a")
    await watcher.run()          # until cancelled; then it gives its Lease back

Ports are injected: `kubernetes` and `incidents` are adapters (fleet.ports), `rules` the policy as
intake asks it (intake.rules), without which nobody watches and nothing new is admitted. Any number
may run; one leads. Nothing is kept between terms: the cluster is the memory. Counters are plain
attributes of the rooms of `term` (`nodes.counts`, `writer.counts`, `delivery.counts`), for metrics.
"""

import random

from fleet.ports import Budgets, Incidents, Kubernetes, Proofs
from intake.admission import Gate
from intake.backoff import Dice
from intake.clock import Clock, SystemClock
from intake.journal import Journal
from intake.leader import Leader
from intake.rules import Rules
from intake.settings import Settings
from intake.surroundings import (
    Announce,
    Complain,
    Surroundings,
    TellFault,
    log_only,
    of_nothing,
    to_nobody,
)
from intake.term import Term


class Watcher:
    """Takes part in the election under `identity` (unique a process) and leads when it wins.

    `gates` say why a sick node must not be held now, besides breaker and cap. `announce` tells
    people of a storm, `complain` of a request on a node that means nothing, `tell` of a fault that
    nothing is held for; the log has it too.
    """

    def __init__(
        self,
        kubernetes: Kubernetes,
        incidents: Incidents,
        rules: Rules,
        *,
        cluster: str,
        identity: str,
        budgets: Budgets | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        dice: Dice = random.random,
        gates: tuple[Gate, ...] = (),
        announce: Announce = log_only,
        complain: Complain = to_nobody,
        tell: TellFault = of_nothing,
        proofs: Proofs | None = None,
    ) -> None:
        self._given = Surroundings(
            kubernetes,
            incidents,
            rules,
            cluster,
            gates,
            settings or Settings(),
            clock or SystemClock(),
            dice,
            Journal(),
            budgets,
            announce,
            complain,
            tell,
            proofs,
        )
        self.leader = Leader(self._given, identity)
        self.term: Term | None = None

    @property
    def leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self.leader.leading

    async def run(self) -> None:
        """Stand by and lead, until cancelled."""
        await self.leader.run(self._lead)

    async def _lead(self) -> None:
        self.term = Term(self._given)
        await self.term.run()
