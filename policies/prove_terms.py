"""What a proof takes along of the policy: how to prove, and what its ask for a lease needs."""

from datetime import datetime

from fleet.fault import FaultName
from policies.budget_terms import Budget
from policies.lease_terms import LeaseTerms
from policies.proving_terms import Proving
from policies.schema import Policy
from policies.scopes import ScopeLabels
from policies.terms import Terms

PATIENCE = 3_600
"""Seconds after which a sweep's ask is due: every repair that asks within an hour comes first."""


class ProveTerms(Terms):
    """The part of a policy that sweeps and proofs need; a changed policy applies to new ones."""

    proving: Proving
    budgets: tuple[Budget, ...]
    scopes: ScopeLabels
    label_scopes: tuple[str, ...]
    hand_offs_count_in: tuple[str, ...]
    harmless: tuple[FaultName, ...] = ()
    dry_run: bool = False

    @classmethod
    def of(cls, policy: Policy) -> "ProveTerms":
        """Taken from a whole policy."""
        return cls(
            proving=policy.proving,
            budgets=policy.budgets,
            scopes=policy.scopes,
            label_scopes=policy.label_scopes,
            hand_offs_count_in=policy.hand_offs_count_in,
            harmless=tuple(each for each in FaultName if _is_harmless(policy, each)),
            dry_run=policy.dry_run,
        )

    def lease(self, since: datetime) -> LeaseTerms:
        """The terms of an ask that begins now."""
        return LeaseTerms(
            budgets=self.budgets,
            scopes=self.scopes,
            label_scopes=self.label_scopes,
            hand_offs_count_in=self.hand_offs_count_in,
            since=since,
            patience=PATIENCE,
        )


def _is_harmless(policy: Policy, name: FaultName) -> bool:
    """No incident ever takes up such a fault, so it keeps no node from its work either."""
    return not policy.fault(name).hold or policy.rehearsed(name)
