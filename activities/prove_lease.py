"""The activities `prove-lease` and `prove-give-back`: a sweep asks the disruption budget, too.

Now or not at all: a sweep is in no hurry, so an ask that would have to wait is taken back, and
nobody is ever behind it in the queue.
"""

from temporalio import activity

from activities.borrowing import outcome_of
from activities.coalescer import Coalescer
from activities.endings import node_gone
from activities.scope_claims import ScopeClaims
from fleet.errors import NotFound
from fleet.names import prove_workflow_id
from fleet.outcome import Outcome, OutcomeKind
from fleet.proving import ProveRequest
from fleet.reason import QUEUED
from policies.lease_terms import LeaseTerms


class ProveLeaseActivities:
    """Asks of sweeps."""

    def __init__(self, claims: ScopeClaims, coalescer: Coalescer) -> None:
        self._claims = claims
        self._coalescer = coalescer

    @activity.defn(name="prove-lease")
    async def lease(self, request: ProveRequest, terms: LeaseTerms) -> Outcome:
        """SUCCEEDED: the lease is ours. Anything else: it is not, and nothing waits for one."""
        return await outcome_of(self._lease(request, terms))

    async def _lease(self, request: ProveRequest, terms: LeaseTerms) -> Outcome:
        node = request.task.node
        try:
            ask = await self._claims.ask(_holder(request), node, terms)
            stops = await self._coalescer.ask(ask)
            if not stops:
                return Outcome(OutcomeKind.SUCCEEDED)
            await self._coalescer.give(_holder(request))
        except NotFound:
            return node_gone(node.name)
        return Outcome(OutcomeKind.TRANSIENT, QUEUED, stops)

    @activity.defn(name="prove-give-back")
    async def give_back(self, request: ProveRequest) -> Outcome:
        """SUCCEEDED: neither lease nor ask of this proof is left."""
        return await outcome_of(self._give_back(request))

    async def _give_back(self, request: ProveRequest) -> Outcome:
        await self._coalescer.give(_holder(request))
        return Outcome(OutcomeKind.SUCCEEDED)


def _holder(request: ProveRequest) -> str:
    node = request.task.node
    return prove_workflow_id(node.cluster, node.name, node.machine)
