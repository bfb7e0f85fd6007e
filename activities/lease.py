"""The activities `lease` and `give-back`: ask the disruption budget, and pay back.

Also the budget's own two: tell incidents that a lease is there, and look whether old leases are
still needed. How many a scope allows is `scope_claims`; who is next is `policies.budget`.
"""

import logging
from collections.abc import Mapping

from temporalio import activity

from activities.borrowing import outcome_of
from activities.coalescer import Coalescer
from activities.conduct import WORKS_LATER
from activities.scope_claims import ScopeClaims
from fleet.errors import NotFound, Refused
from fleet.mark import MarkState
from fleet.names import PROVE_PREFIX, incident_workflow_id, node_path
from fleet.node import read_node
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Grants, Kubernetes
from fleet.reason import QUEUED
from fleet.request import StepRequest
from fleet.step import Step
from policies.budget_look import Found
from policies.ladder import Ending
from policies.lease_terms import LeaseTerms

_log = logging.getLogger(__name__)


class LeaseActivities:
    """Asks of incidents."""

    def __init__(self, claims: ScopeClaims, coalescer: Coalescer) -> None:
        self._claims = claims
        self._coalescer = coalescer

    @activity.defn(name="lease")
    async def lease(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        """SUCCEEDED: the lease is ours. TRANSIENT `queued`: on record, and granted later."""
        return await outcome_of(self._lease(request, terms))

    async def _lease(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        node = request.node
        try:
            ask = await self._claims.ask(_incident(request), node, terms)
            stops = await self._coalescer.ask(ask)
        except NotFound:
            return Outcome(OutcomeKind.SUPERSEDED, "node-gone", f"{node.name} is not there")
        if stops:
            return Outcome(OutcomeKind.TRANSIENT, QUEUED, stops)
        lent = ", ".join(f"{each.scope} of {each.maximum}" for each in ask.claims)
        return Outcome(OutcomeKind.SUCCEEDED, detail=lent)

    @activity.defn(name="give-back")
    async def give_back(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        """SUCCEEDED: neither lease nor ask of this incident is left.

        Before a hand-off the budget hears at once that people have the node: in scopes where that
        counts nobody else is granted its place between.
        """
        return await outcome_of(self._give_back(request, terms))

    async def _give_back(self, request: StepRequest, terms: LeaseTerms) -> Outcome:
        if request.makes_way_for is Step.HAND_OFF:
            await self._hand_off(request, terms)
        else:
            await self._coalescer.give(_incident(request))
        return Outcome(OutcomeKind.SUCCEEDED)

    async def _hand_off(self, request: StepRequest, terms: LeaseTerms) -> None:
        """A node that is not there any more is with nobody."""
        try:
            ask = await self._claims.ask(_incident(request), request.node, terms)
        except NotFound:
            await self._coalescer.give(_incident(request))
            return
        await self._coalescer.hand_off(ask)


class BudgetActivities:
    """What the budget workflow asks for."""

    def __init__(self, incidents: Grants, kubernetes: Kubernetes) -> None:
        self._incidents = incidents
        self._kubernetes = kubernetes

    @activity.defn(name="grant")
    async def grant(self, incidents: list[str]) -> list[str]:
        """Tell each incident that its lease is there; return those that are over."""
        return [each for each in incidents if not await self._incidents.grant(each)]

    @activity.defn(name="look-at-leases")
    async def look_at_leases(self, leases: Mapping[str, str]) -> dict[str, str]:
        """Given incident -> node, say of each whether it is open, over, or with people.

        A closed run whose node still carries an owned mark is taken up again by the next run, which
        goes on with the lease. Who cannot be told is left out, and keeps what it has; so does who
        waits for an answer: its node is with people, unless a step of ours may still be happening.
        """
        found = {each: await self._find(each, node) for each, node in leases.items()}
        return {incident: what.value for incident, what in found.items() if what}

    async def _find(self, incident: str, node: str) -> Found | None:
        try:
            stage = await self._incidents.stage(incident)
            if stage == Ending.ASK.value:
                return None
            if stage is not None:
                return Found.WITH_PEOPLE if stage == Step.HAND_OFF.value else Found.OPEN
            proof = incident.startswith(PROVE_PREFIX)  # a mark is an incident's, and no proof's
            return Found.OPEN if not proof and await self._owned(incident, node) else Found.OVER
        except (*WORKS_LATER, Refused, ValueError) as problem:
            _log.warning("what=lease-kept incident=%s why=%r", incident, str(problem))
            return None

    async def _owned(self, incident: str, name: str) -> bool:
        """Whether the mark says that this incident, not another machine's, has the node."""
        try:
            node = read_node(await self._kubernetes.get(node_path(name)), "")
        except NotFound:
            return False
        if node.mark_problem:
            raise ValueError(node.mark_problem)
        mark = node.mark
        return (
            mark is not None
            and mark.state is MarkState.OWNED
            and incident.endswith(f"/{name}/{mark.machine}")
        )


def _incident(request: StepRequest) -> str:
    node = request.node
    return incident_workflow_id(node.cluster, node.name, node.machine)
