"""What an ask for a lease carries of the policy: its budgets, and what names their scopes."""

from collections.abc import Iterable
from datetime import datetime

from fleet.fault import FaultName
from policies.budget_terms import Budget
from policies.schema import Policy
from policies.scopes import ScopeLabels
from policies.terms import Terms


class LeaseTerms(Terms):
    """`since` is when the incident was opened; `patience` the seconds that jobs may stay with the
    worst of its faults: who has less is served first, at most an hour before its turn.
    """

    budgets: tuple[Budget, ...]
    scopes: ScopeLabels
    label_scopes: tuple[str, ...]
    hand_offs_count_in: tuple[str, ...]
    since: datetime
    patience: int = 0

    @classmethod
    def of(cls, policy: Policy, since: datetime, faults: Iterable[FaultName] = ()) -> "LeaseTerms":
        """The part of a policy that an ask needs, for an incident with these faults."""
        return cls(
            budgets=policy.budgets,
            scopes=policy.scopes,
            label_scopes=policy.label_scopes,
            hand_offs_count_in=policy.hand_offs_count_in,
            since=since,
            patience=min((policy.urgency(each) for each in faults), default=0),
        )
