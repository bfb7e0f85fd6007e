"""Which scopes a node is in just now, how large they are, and so how many leases each allows.

Read when a lease is asked for: labels and fleets change. Sizes are kept for a short while, so that
a storm of asks does not list all nodes once each.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from activities.waiting import list_all
from fleet.node import NodeIdentity
from fleet.ports import Json, Kubernetes
from policies.amounts import allowed
from policies.budget import Claim
from policies.lease_terms import LeaseTerms
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

    async def of(self, node: NodeIdentity, terms: LeaseTerms) -> tuple[Claim, ...]:
        """A claim for every budget whose scope the node is in."""
        manifest = await self._kubernetes.get(f"/api/v1/nodes/{node.name}")
        labels = manifest["metadata"].get("labels") or {}
        fleet = [self._scopes(each, node, terms) for each in await self._fleet()]
        own = self._scopes(labels, node, terms)
        sizes = Counter(pair for each in fleet for pair in each.items())
        claims = [
            Claim(f"{scope}/{own[scope]}", allowed(each.max, max(1, sizes[scope, own[scope]])))
            for each in terms.budgets
            if (scope := each.scope) in own
        ]
        return (*claims, *await self._jobs(node, terms))

    def _scopes(
        self, labels: Mapping[str, str], node: NodeIdentity, terms: LeaseTerms
    ) -> dict[str, str]:
        return {CLUSTER: node.cluster, **keys_of(labels, terms.scopes, terms.label_scopes)}

    async def _fleet(self) -> tuple[Mapping[str, str], ...]:
        if self._counted is None or self._now() >= self._counted + FRESH:
            nodes = await self._all("/api/v1/nodes", {})
            self._labels = tuple(each["metadata"].get("labels") or {} for each in nodes)
            self._counted = self._now()
        return self._labels

    async def _jobs(self, node: NodeIdentity, terms: LeaseTerms) -> tuple[Claim, ...]:
        """One claim a job with pods on the node; its size is the nodes that it runs on."""
        budgets = [each for each in terms.budgets if each.scope == JOB]
        if not budgets:
            return ()
        pods = await self._all("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node.name}"})
        claims = []
        for key, value, namespace in sorted(
            {found for each in pods if (found := _job(each, terms))}
        ):
            query = {"labelSelector": f"{key}={value}"}
            members = await self._all(f"/api/v1/namespaces/{namespace}/pods", query)
            running = [each for each in members if _job(each, terms)]
            size = len({each["spec"].get("nodeName") for each in running} - {None})
            scope = f"{JOB}/{namespace}/{value}"
            claims += [Claim(scope, allowed(each.max, max(1, size))) for each in budgets]
        return tuple(claims)

    async def _all(self, path: str, query: Mapping[str, str]) -> Sequence[Json]:
        return (await list_all(self._kubernetes, path, query)).objects


def _job(pod: Mapping[str, Any], terms: LeaseTerms) -> tuple[str, str, str] | None:
    """The label that names a pod's job, its value and the namespace; None for a finished pod."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return None
    labels = pod["metadata"].get("labels") or {}
    key = next((each for each in terms.scopes.job if labels.get(each)), None)
    return (key, labels[key], pod["metadata"]["namespace"]) if key else None
