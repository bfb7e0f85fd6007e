"""What the watcher asks of the policy, and how a policy answers.

The watcher keeps no opinion of its own on faults: which are held, which are worse, what a
condition means. All of it is pure and comes from `policies`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from fleet.fault import Fault
from fleet.node import NodeState
from fleet.report import Report
from policies.budget_terms import Breaker
from policies.schema import Policy
from policies.signals import read_report, scopes_of


class Rules(Protocol):
    """One policy document, as intake needs it. No method blocks or raises."""

    @property
    def cool_down(self) -> timedelta:
        """How long a node is left alone after a person took hold and mark away."""
        ...

    @property
    def breaker(self) -> Breaker:
        """What is judged as one, and when so much of it is sick that the sensor is the suspect."""
        ...

    def report(
        self, node: NodeState, now: datetime, agent_silent: bool, before: Report | None
    ) -> Report:
        """Everything that is wrong with the node; `before` is our last Report of this Node object,
        so that what others say keeps the instant at which we first saw it."""
        ...

    @property
    def proves(self) -> bool:
        """Whether nodes are proven: a rehearsal runs nothing on them and takes no taint off."""
        ...

    def holds(self, fault: Fault) -> bool:
        """Whether the policy keeps new work off a node with this fault."""
        ...

    def rehearses(self, fault: Fault) -> bool:
        """Whether it would, but for dry run."""
        ...

    def tells(self, fault: Fault) -> bool:
        """Whether people are told of this fault although no node is held for it."""
        ...

    def urgency(self, fault: Fault) -> int:
        """Which of two is held first when there are hundreds: the lower number."""
        ...

    def scopes(self, node: NodeState) -> Mapping[str, str]:
        """The node's key in every scope that its labels name."""
        ...


class PolicyRules:
    """A policy document as Rules."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def cool_down(self) -> timedelta:
        """The document's limit."""
        return self._policy.limits.cool_down

    @property
    def breaker(self) -> Breaker:
        """The document's terms."""
        return self._policy.breaker

    def report(
        self, node: NodeState, now: datetime, agent_silent: bool, before: Report | None
    ) -> Report:
        """By the document's signals."""
        return read_report(node, self._policy, now, agent_silent, before)

    @property
    def proves(self) -> bool:
        """Unless all is in dry run."""
        return not self._policy.dry_run

    def holds(self, fault: Fault) -> bool:
        """As the document says of the fault, listed or not; in dry run nothing is held."""
        return self._policy.fault(fault.name).hold and not self._policy.rehearsed(fault.name)

    def rehearses(self, fault: Fault) -> bool:
        """As the document says of the fault and of dry run."""
        return self._policy.fault(fault.name).hold and self._policy.rehearsed(fault.name)

    def tells(self, fault: Fault) -> bool:
        """As the document says: a hand-off or a question tells of what is held."""
        terms = self._policy.fault(fault.name)
        return terms.notify and not terms.hold

    def urgency(self, fault: Fault) -> int:
        """Seconds that jobs may stay: what a policy tolerates for less time is worse."""
        return int(self._policy.fault(fault.name).tolerate.total_seconds())

    def scopes(self, node: NodeState) -> Mapping[str, str]:
        """By the document's labels."""
        return scopes_of(node, self._policy)
