"""One leader's term: where each change of a node leads.

Composition and routing only. What a node needs is judged by pure rules (`admission`, `marks`); how
it is written and what the engine hears have modules of their own. A term keeps nothing that the
cluster does not: the next one begins from a list.
"""

import asyncio
from dataclasses import replace
from sys import intern

from fleet.names import LEASES, agent_lease
from fleet.node import NodeState, read_node
from fleet.opening import Opening
from fleet.ports import Json
from fleet.report import Report
from intake.admission import Rank, rank, worst
from intake.breaker import Breaker
from intake.breaker import Callers as BreakerCallers
from intake.cap import Cap
from intake.census import CensusTaker
from intake.comparison import Comparison, Findings
from intake.delivery import Callers, Delivery, HoldRemoved, NodeGone, Notice, Parcel, Returned, due
from intake.knowledge import Knowledge
from intake.list_watch import ListWatch
from intake.marks import Facts, Standing, let_go, next_write, reopen, standing
from intake.muster import Muster, Ward
from intake.node_writer import NodeWriter
from intake.nominations import rehearsal_id, workflow_id
from intake.prover import Prover
from intake.rehearsal import Rehearsals
from intake.remarks import Remarks
from intake.silence import Agents, Heartbeat, read_heartbeat
from intake.surroundings import Surroundings
from intake.tally import Tally, stance_of
from intake.traits import cause_among, traits_of
from intake.work_queue import WorkQueue
from policies.storm import Traits

NODES = "/api/v1/nodes"


class Term:
    """Runs from winning the election until it is cancelled."""

    def __init__(self, given: Surroundings) -> None:
        self._given = given
        self._settings = given.settings
        self._journal = given.journal
        self._ready = False
        self.nodes = ListWatch(given, NODES, self._read_small, self._node_changed)
        self.leases = ListWatch(given, LEASES, read_heartbeat, self._lease_changed)
        self.agents = Agents(given.settings)
        self.breaker = Breaker(
            given, BreakerCallers(self._judge, self._cause_of, self._barred_changed)
        )
        self.writer = NodeWriter(given)
        cap = Cap(self.breaker.muster, self.writer.busy)
        gates = (self.breaker.gate, cap.gate, *given.gates)
        self.knowledge = Knowledge(given, self.agents, self.breaker, gates)
        self.writes = WorkQueue(given.settings.node_writes_at_once)
        self.remarks = Remarks(given)
        self.rehearsals = Rehearsals(given.settings)
        callers = Callers(
            self._compose,
            self._rehearse,
            self._suspect,
            self.rehearsals.told,
            self._holds_true,
            self._told,
        )
        self.delivery = Delivery(given, callers, self.writes.idle)
        self.prover = Prover(given, self.writes.idle, self.writer.busy)
        findings = Findings(
            self._run_gone,
            self._found_nodeless,
            self._found_unmarked,
            self._handed_off,
            self._found_rehearsal,
        )
        self.comparison = Comparison(given, self.nodes.records, findings)
        self.tally = Tally()
        self.census = CensusTaker(given, self.tally, self.breaker.barred)

    async def run(self) -> None:
        """Watch, judge, write and deliver until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run())
            group.create_task(self.leases.run())
            await self.nodes.synced.wait()
            await self.breaker.read()
            self._ready = True
            await self._judge_all()
            group.create_task(self.breaker.run())
            group.create_task(self.writes.run(self._write))
            group.create_task(self.delivery.run())
            group.create_task(self.prover.run())
            group.create_task(self.comparison.run())
            group.create_task(self.census.run())
            group.create_task(self._sweep())

    async def _sweep(self) -> None:
        """Judge every node again, for what changes by time alone."""
        while True:
            await self._given.clock.sleep(self._settings.sweep_every.total_seconds())
            await self._judge_all()

    async def _judge_all(self) -> None:
        names = list(self.nodes.records)
        for start in range(0, len(names), self._settings.sweep_slice):
            for name in names[start : start + self._settings.sweep_slice]:
                self._judge(name)
            await asyncio.sleep(0)

    def _node_changed(self, name: str, before: NodeState | None, after: NodeState | None) -> None:
        if before and (after is None or after.identity.uid != before.identity.uid):
            self._node_gone(before)
        elif before and after and let_go(before, after) and not self.writer.takes_mark_off(name):
            self.knowledge.hold_was_taken(after)
        self._count(name, after)
        if after:
            self.writer.seen(name, after.resource_version)
            self.agents.booted(name, after.boot_id, self._given.clock.now())
            self._judge(name)

    def _count(self, name: str, node: NodeState | None) -> None:
        if node:
            handed_off = workflow_id(node) in self.knowledge.handed_off
            self.tally.put(name, stance_of(node, self._given.rules.scopes(node), handed_off))
        else:
            self.tally.drop(name)
        self.census.look()

    def _lease_changed(self, name: str, before: Heartbeat | None, after: Heartbeat | None) -> None:
        del before
        if after:
            self.agents.renewed(name, after.renewed, self._given.clock.now())
        else:
            self.agents.lease_gone(name)

    def _node_gone(self, node: NodeState) -> None:
        self.writer.gone(node.identity.name)
        self.delivery.forget(node.identity.name)
        self.prover.forget(node.identity.name)
        self.agents.node_gone(node.identity.name)
        self.knowledge.forget(node)
        if node.identity.name in self.rehearsals:
            self.rehearsals.forget(node.identity.name)
            self._notify(NodeGone(rehearsal_id(node), node.identity.uid))
        if node.mark and node.mark.uid == node.identity.uid:
            self.knowledge.departed(node)
            self._notify(NodeGone(workflow_id(node), node.identity.uid))

    def _judge(self, name: str) -> None:
        """Find out whether there is something to write or to send; do neither here."""
        node = self.nodes.records.get(name)
        if node is None or not self._ready or self.writer.busy(name):
            return
        facts = self.knowledge.facts(node)
        self._remember(node, facts)
        self.prover.look(node)
        if next_write(node, facts, self._settings):
            self.writes.put(name, rank(node, facts.sick, self._given.rules, facts.now))
        elif self._is_news(node, facts):
            self.delivery.offer(name, rank(node, facts.sick, self._given.rules, facts.now))
        if self._rehearsal(node, facts):
            place = rank(node, facts.rehearsed, self._given.rules, facts.now)
            self.delivery.offer_rehearsal(name, place)

    def _remember(self, node: NodeState, facts: Facts) -> None:
        name, workflow = node.identity.name, workflow_id(node)
        self.knowledge.is_marked(node)
        if standing(node) is Standing.LET_GO:
            self.knowledge.hold_was_taken(node)
        if self.knowledge.cool_down_began(node):
            self._notify(HoldRemoved(workflow, name, node.identity.uid, mark_removed=True))
        if self.knowledge.hold_is_missing(node):
            self._notify(HoldRemoved(workflow, name, node.identity.uid, mark_removed=False))
        if self.knowledge.asks_to_return(node):
            self._notify(Returned(workflow, name))
        self.remarks.about(node, facts)

    def _is_news(self, node: NodeState, facts: Facts) -> bool:
        parcel = self._parcel(node, facts.report)
        sent = self.delivery.sent.get(node.identity.name)
        return parcel is not None and due(sent, parcel, facts.now, self._settings)

    async def _write(self, name: str, place: Rank) -> None:
        del place
        node = self.nodes.records.get(name)
        if node is None or self.writer.busy(name):
            return
        wrote = await self.writer.write(
            node,
            lambda fresh: next_write(fresh, self.knowledge.facts(fresh), self._settings),
        )
        if wrote or self.nodes.records.get(name) is not node:
            self._judge(name)

    def _compose(self, name: str) -> Parcel | None:
        """What the engine should know of a marked node; None where there is nothing to say."""
        node = self.nodes.records.get(name)
        if node is None or self.writer.busy(name):
            return None
        return self._parcel(node, self.knowledge.report(node))

    def _rehearse(self, name: str) -> Parcel | None:
        node = self.nodes.records.get(name)
        return self._rehearsal(node, self.knowledge.facts(node)) if node else None

    def _rehearsal(self, node: NodeState, facts: Facts) -> Parcel | None:
        if facts.rehearsed is None and node.identity.name not in self.rehearsals:
            return None
        scopes = self._given.rules.scopes(node)
        return self.rehearsals.parcel(node, facts.report, facts.rehearsed, scopes, facts.now)

    def _parcel(self, node: NodeState, report: Report) -> Parcel | None:
        if standing(node) not in (Standing.PENDING, *_TAKEN_UP) or node.mark is None:
            return None
        opening = Opening(node.identity, node.mark, self._given.rules.scopes(node))
        return Parcel(opening, report)

    def _suspect(self, name: str) -> None:
        self.comparison.suspect(name)

    def _holds_true(self, notice: Notice) -> bool:
        """Whether a fact about a node is still one when its turn to be told comes."""
        if not isinstance(notice, HoldRemoved) or notice.mark_removed:
            return True
        node = self.nodes.records.get(notice.node)
        return node is None or standing(node) is not Standing.OWNED

    def _told(self, notice: Notice, incident_open: bool) -> None:
        if isinstance(notice, Returned):
            self.knowledge.returns(notice.node, notice.workflow_id, incident_open)
            self._judge(notice.node)

    async def _run_gone(self, node: NodeState) -> None:
        """One try only: whoever wrote since may be the next run."""
        if self.writer.busy(node.identity.name):
            return
        wrote = await self.writer.write(
            node,
            lambda fresh: reopen(fresh, worst(self.knowledge.report(fresh), self._given.rules)),
            attempts=1,
        )
        if wrote:
            self.delivery.forget(node.identity.name)
        self._judge(node.identity.name)

    def _found_rehearsal(self, node: NodeState) -> None:
        scopes, now = self._given.rules.scopes(node), self._given.clock.now()
        self.rehearsals.listed(node, scopes, now)

    def _handed_off(self, workflows: frozenset[str]) -> None:
        if workflows == self.knowledge.handed_off:
            return
        self.knowledge.handed_off = workflows
        for name, node in self.nodes.records.items():
            self._count(name, node)

    def _barred_changed(self) -> None:
        self.census.tell()

    def _cause_of(self, ward: Ward, muster: Muster) -> str:
        return cause_among(muster.everyone(ward.scope), ward.sick, self._traits)

    def _traits(self, name: str) -> Traits:
        node, report = self.nodes.records.get(name), self.knowledge.last_report(name)
        if node is None:
            return {}
        fault = self.knowledge.sick(node, report) if report else None
        heartbeat = self.leases.records.get(agent_lease(name))
        agent = heartbeat.version if heartbeat else ""
        return traits_of(node, fault, self._given.rules.scopes(node), agent)

    def _found_nodeless(self, workflow: str) -> None:
        if not self.knowledge.is_departed(workflow):
            self._notify(NodeGone(workflow, ""))

    def _found_unmarked(self, node: NodeState) -> None:
        """With a cool-down on it, a person let it go; without, its machine came back."""
        if node.cool_down is not None:
            name, uid = node.identity.name, node.identity.uid
            self._notify(HoldRemoved(workflow_id(node), name, uid, mark_removed=True))
        elif not self.knowledge.was_marked(node):
            self.knowledge.may_return(node)
            self._judge(node.identity.name)

    def _notify(self, notice: Notice) -> None:
        self.delivery.notify(notice, self._given.clock.now())

    def _read_small(self, manifest: Json) -> NodeState:
        """Of 14 KB keep what is judged; words that every node repeats are kept once."""
        node = read_node(manifest, self._given.cluster)
        return replace(
            node,
            allocatable={},
            labels={intern(key): intern(value) for key, value in node.labels.items()},
            conditions=tuple(
                replace(each, type=intern(each.type), reason=intern(each.reason))
                for each in node.conditions
            ),
        )


_TAKEN_UP = (Standing.OWNED, Standing.UNHELD, Standing.PROBATION)
