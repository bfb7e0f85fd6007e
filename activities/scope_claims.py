"""Which scopes a node is in just now, how large they are, and so how many leases each allows.

Read when a lease is asked for: labels and fleets change. Sizes are read only where the policy
counts in shares, and kept for a short while, so that a storm of asks does not list all nodes once
each. Jobs are `job_claims`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from activities.job_claims import jobs_on
from activities.waiting import list_all
from fleet.names import node_path
from fleet.node import NodeIdentity
from fleet.ports import Kubernetes
from policies.amounts import Percent, allowed
from policies.lease_terms import LeaseTerms
from policies.ledger import Ask, Claim
from policies.scopes import CLUSTER, JOB, keys_of

FRESH = timedelta(seconds=30)
"""How long counted sizes are good: a fleet does not change by percents in half a minute."""


class ScopeClaims:
    """Reads claims through the Kubernetes port."""

    def __init__(self, kubernetes: Kubernetes, now: Callable[[], datetime]) -> None:
        self._kubernetes = kubernetes
        self._now = now
        self._labels: tuple[Mapping[str, str], ...] = ()
        self._counted: datetime | None = None

    async def ask(self, incident: str, node: NodeIdentity, terms: LeaseTerms) -> Ask:
        """The ask of an incident: a claim for every budget whose scope the node is in.

        Raises NotFound for a node that is not there, and what the port raises.
        """
        manifest = await self._kubernetes.get(node_path(node.name))
        own = _scopes(manifest["metadata"].get("labels") or {}, node, terms)
        sizes = await self._sizes(node, terms)
        claims = [
            self._claim(f"{scope}/{own[scope]}", scope, allowed(each.max, size), terms)
            for each in terms.budgets
            if (scope := each.scope) in own
            for size in [max(1, sizes[scope, own[scope]])]
        ]
        claims += await self._jobs(node, terms)
        counted = {each.scope for each in claims}
        every = (f"{scope}/{key}" for scope, key in own.items())
        within = tuple(each for each in every if each not in counted)
        return Ask(incident, node.name, tuple(claims), terms.since, terms.patience, within)

    def _claim(self, name: str, scope: str, maximum: int, terms: LeaseTerms) -> Claim:
        return Claim(name, maximum, scope in terms.hand_offs_count_in)

    async def _sizes(self, node: NodeIdentity, terms: LeaseTerms) -> Counter[tuple[str, str]]:
        """Nodes by scope and key; nothing where no budget is a share of them."""
        if not any(isinstance(each.max, Percent) and each.scope != JOB for each in terms.budgets):
            return Counter()
        fleet = (_scopes(each, node, terms) for each in await self._fleet())
        return Counter(pair for each in fleet for pair in each.items())

    async def _fleet(self) -> Sequence[Mapping[str, str]]:
        if self._counted is None or self._now() >= self._counted + FRESH:
            nodes = (await list_all(self._kubernetes, "/api/v1/nodes", {})).objects
            self._labels = tuple(each["metadata"].get("labels") or {} for each in nodes)
            self._counted = self._now()
        return self._labels

    async def _jobs(self, node: NodeIdentity, terms: LeaseTerms) -> list[Claim]:
        """One claim a job with pods on the node; its size is the nodes that it runs on."""
        budgets = [each for each in terms.budgets if each.scope == JOB]
        if not budgets:
            return []
        shares = any(isinstance(each.max, Percent) for each in budgets)
        jobs = await jobs_on(self._kubernetes, node.name, terms.scopes.job, shares)
        return [
            self._claim(f"{JOB}/{name}", JOB, allowed(each.max, size), terms)
            for name, size in jobs.items()
            for each in budgets
        ]


def _scopes(labels: Mapping[str, str], node: NodeIdentity, terms: LeaseTerms) -> dict[str, str]:
    return {CLUSTER: node.cluster, **keys_of(labels, terms.scopes, terms.label_scopes)}
