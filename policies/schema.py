"""The policy document as types: what people write in YAML, checked and frozen.

Each part has its own module; this one puts them together. The whole document is an argument of
each incident, so it must survive JSON unchanged.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import Field, StrictBool

from fleet.fault import FaultName
from fleet.step import Step
from policies.approval_terms import Approval
from policies.budget_terms import Breaker, Budget
from policies.fault_terms import FaultTerms
from policies.limit_terms import Limits
from policies.proving_terms import Proving
from policies.scopes import CLUSTER, LABEL_PREFIX, Scope, ScopeLabels
from policies.signal_terms import Signal
from policies.terms import Terms

NEVER_HELD_UNLISTED = (FaultName.APPLICATION, FaultName.MONITOR_SILENT)
"""Not the node's fault: an application error is its job's, a silent agent is the sensor's."""
_UNLISTED = {hold: FaultTerms(hold=hold) for hold in (True, False)}


class Policy(Terms):
    """Everything that gpumend is allowed to do, and when. Absent parts take the smallest power."""

    dry_run: StrictBool = Field(
        default=False,
        description="Whether all is only decided, recorded and shown, and nothing is touched: no"
        " hold, no drain, no repair. Default no.",
    )
    budgets: Annotated[tuple[Budget, ...], Field(min_length=1, max_length=32)] = Field(
        default=(Budget(scope=CLUSTER, max=1),),
        description="How many nodes may be disrupted at once; every one must agree. Default: one"
        " node of the cluster.",
    )
    hand_offs_count_in: Annotated[tuple[Scope, ...], Field(max_length=32)] = Field(
        default=(CLUSTER,),
        description="Scopes in which a node that was handed to a person still uses the budget."
        " Default cluster: in small scopes one unanswered hand-off would stop all repair.",
    )
    breaker: Breaker = Field(
        default=Breaker(), description="When so much is sick at once that the sensor is suspect."
    )
    faults: Mapping[FaultName, FaultTerms] = Field(
        default={},
        description="What is done about each fault. A fault that is not listed is held and handed"
        " to a person; application and monitor-silent, not listed, do nothing.",
    )
    approvals: Annotated[tuple[Approval, ...], Field(max_length=8)] = Field(
        default=(), description="Steps that wait for a person's yes. Default: none."
    )
    signals: Annotated[tuple[Signal, ...], Field(max_length=256)] = Field(
        default=(),
        description="Conditions of other agents and the faults they stand for. Default: none;"
        " Ready is built in.",
    )
    scopes: ScopeLabels = Field(
        default=ScopeLabels(), description="Which labels name pool, rack, NVLink domain and job."
    )
    proving: Proving = Field(
        default=Proving(), description="How new, returned and idle nodes are proven."
    )
    limits: Limits = Field(
        default=Limits(), description="How long and how often at most, for all faults."
    )

    def fault(self, name: FaultName) -> FaultTerms:
        """The terms of a fault, listed or not."""
        return self.faults.get(name) or _UNLISTED[name not in NEVER_HELD_UNLISTED]

    def rehearsed(self, name: FaultName) -> bool:
        """Whether the fault is only in dry run: it adds nothing to what really happens."""
        return self.dry_run or self.fault(name).dry_run

    def urgency(self, name: FaultName) -> int:
        """Which of two faults is looked after first: the lower number, seconds jobs may stay."""
        return int(self.fault(name).tolerate.total_seconds())

    def approval(self, step: Step) -> Approval | None:
        """The approval that the step waits for, if any."""
        for each in self.approvals:
            if each.step is step:
                return each
        return None

    @property
    def label_scopes(self) -> tuple[str, ...]:
        """The scopes by node label that budgets, breaker or hand-offs count in."""
        named = [*(each.scope for each in self.budgets), self.breaker.scope]
        every = [*named, *self.hand_offs_count_in]
        return tuple(dict.fromkeys(each for each in every if each.startswith(LABEL_PREFIX)))

    @cached_property
    def digest(self) -> str:
        """A short name of this document's content; only a name, never a key to look it up."""
        plain = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:8]
