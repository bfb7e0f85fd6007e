"""What an ask for a lease carries of the policy: its budgets, and what names their scopes."""

from datetime import datetime

from policies.budget_terms import Budget
from policies.schema import Policy
from policies.scopes import ScopeLabels
from policies.terms import Terms


class LeaseTerms(Terms):
    """`since` is when the incident was opened: who waits longest is served first."""

    budgets: tuple[Budget, ...]
    scopes: ScopeLabels
    label_scopes: tuple[str, ...]
    since: datetime

    @classmethod
    def of(cls, policy: Policy, since: datetime) -> "LeaseTerms":
        """The part of a policy that an ask needs."""
        return cls(
            budgets=policy.budgets,
            scopes=policy.scopes,
            label_scopes=policy.label_scopes,
            since=since,
        )
