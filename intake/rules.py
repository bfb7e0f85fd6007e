"""What the watcher asks of the policy, and how a policy answers.

The watcher keeps no opinion of its own on faults: which are held, which are worse, what a
condition means. All of it is pure and comes from `policies`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from fleet.fault import Fault
from fleet.node import NodeState
from fleet.report import Report


class Rules(Protocol):
    """One policy document, as intake needs it. No method blocks or raises."""

    def report(
        self, node: NodeState, now: datetime, agent_silent: bool, before: Report | None
    ) -> Report:
        """Everything that is wrong with the node; `before` is our last Report of this Node object,
        so that what others say keeps the instant at which we first saw it."""
        ...

    def holds(self, fault: Fault) -> bool:
        """Whether the policy keeps new work off a node with this fault."""
        ...

    def urgency(self, fault: Fault) -> int:
        """Which of two is held first when there are hundreds: the lower number."""
        ...

    def scopes(self, node: NodeState) -> Mapping[str, str]:
        """The node's key in every scope that its labels name."""
        ...
