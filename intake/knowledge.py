"""What a leader has learnt of each node beside the node's own record.

Rebuilt from the cluster when a term begins; what must outlive a term is on the Node. Nothing here
acts: it turns a record into a Report and into the facts that the pure rules judge.
"""

from dataclasses import replace
from datetime import datetime

from fleet.fault import Fault
from fleet.mark import MarkState
from fleet.node import NodeState
from fleet.open_request import CODE
from fleet.report import Report
from intake.admission import (
    Gate,
    Refusal,
    rank,
    refusal,
    starting,
    worst,
    worst_rehearsed,
)
from intake.breaker import Breaker
from intake.marks import Facts, Standing, standing
from intake.member import Beheld, member_of
from intake.nominations import workflow_id
from intake.silence import Agents
from intake.surroundings import Surroundings


class Knowledge:
    """Bounded by the number of nodes and of open incidents.

    `gates` are asked in order; `handed_off` are incidents that a person has, as last listed;
    `refusals` says of each sick node that is not held in a word why.
    """

    def __init__(
        self, given: Surroundings, agents: Agents, breaker: Breaker, gates: tuple[Gate, ...]
    ) -> None:
        self.handed_off: frozenset[str] = frozenset()
        self.refusals: dict[str, str] = {}
        self._given = given
        self._agents = agents
        self._breaker = breaker
        self._gates = gates
        self._reports: dict[str, Report] = {}
        self._read: dict[str, tuple[NodeState, bool]] = {}
        self._clean_since: dict[str, datetime] = {}
        self._let_go: set[str] = set()
        self._unheld: dict[str, str] = {}
        self._departed: dict[str, str] = {}
        self._were_marked: dict[str, str] = {}
        self._returning: dict[str, str] = {}

    def report(self, node: NodeState) -> Report:
        """Read the node now; what it said before keeps its first sights.

        A record that has not changed is not read again: sweeps over a large fleet are for what
        changes by time alone.
        """
        name, now = node.identity.name, self._given.clock.now()
        silent, before = self._agents.silent(name, now), self._reports.get(name)
        if before is not None and before.node.uid != node.identity.uid:
            before = None
        known = self._read.get(name)
        if before and known and known[0] is node and known[1] is silent:
            report = replace(before, observed=now)
        else:
            report = self._given.rules.report(node, now, silent, before)
        self._reports[name], self._read[name] = report, (node, silent)
        self._remember_clean(node, report, now)
        return report

    def facts(self, node: NodeState) -> Facts:
        """Everything that decides what is written for this node."""
        name, report = node.identity.name, self.report(node)
        sick, now = self.sick(node, report), self._given.clock.now()
        self._note(node, sick)
        blocked = self._blocked(node, report) if sick else ""
        self._remember_refusal(node, sick, blocked, now)
        return Facts(
            now=now,
            report=report,
            cool_down=self._given.rules.cool_down,
            sick=sick,
            rehearsed=worst_rehearsed(report, self._given.rules, self._starting(node)),
            blocked=blocked,
            returning=self._returning.get(name),
            let_go=name in self._let_go,
            clean_since=self._clean_since.get(name),
        )

    def sick(self, node: NodeState, report: Report) -> Fault | None:
        """The fault that the node is to be held for, if any."""
        return worst(report, self._given.rules, self._starting(node))

    def last_report(self, name: str) -> Report | None:
        """What was read of a node last."""
        return self._reports.get(name)

    def hold_was_taken(self, node: NodeState) -> None:
        """A person took hold and mark away; a cool-down is due."""
        self._let_go.add(node.identity.name)

    def cool_down_began(self, node: NodeState) -> bool:
        """True once, when the cool-down that was due stands on the node."""
        name = node.identity.name
        if name not in self._let_go or standing(node) is not Standing.FREE:
            return False
        if node.cool_down is None or self._given.clock.now() >= node.cool_down:
            return False
        self._let_go.discard(name)
        return True

    def hold_is_missing(self, node: NodeState) -> bool:
        """True once for each time that the hold of an owned mark was taken away."""
        name = node.identity.name
        if node.mark is None or standing(node) is not Standing.UNHELD:
            self._unheld.pop(name, None)
            return False
        known = self._unheld.get(name) == node.mark.id
        self._unheld[name] = node.mark.id
        return not known

    def departed(self, node: NodeState) -> None:
        """A marked Node object is gone; its machine may come back under a new one."""
        self._departed[workflow_id(node)] = node.hold.value if node.hold else ""

    def may_return(self, node: NodeState) -> None:
        """An unmarked node has an open incident."""
        self._departed.setdefault(workflow_id(node), "")

    def was_marked(self, node: NodeState) -> bool:
        """Whether this very Node object had its mark: then it did not come back without one, its
        incident has just taken it off and is about to end."""
        return self._were_marked.get(node.identity.name) == node.identity.uid

    def is_departed(self, workflow: str) -> bool:
        """Whether the Node object of this incident was seen to go."""
        return workflow in self._departed

    def asks_to_return(self, node: NodeState) -> bool:
        """Whether it has to be asked if this unmarked node belongs to an open incident."""
        waits = workflow_id(node) in self._departed and node.identity.name not in self._returning
        return waits and standing(node) is Standing.FREE

    def returns(self, name: str, workflow: str, incident_open: bool) -> None:
        """The answer: hold it again, or treat it like any other node."""
        value = self._departed.get(workflow, "")
        if incident_open:
            self._returning[name] = value
        else:
            self._departed.pop(workflow, None)

    def is_marked(self, node: NodeState) -> None:
        """A mark is there: what led to it is over."""
        if node.mark is not None and node.mark.uid == node.identity.uid:
            self._were_marked[node.identity.name] = node.identity.uid
            self._returning.pop(node.identity.name, None)
            self._departed.pop(workflow_id(node), None)

    def forget(self, node: NodeState) -> None:
        """The Node object is gone; its name may come back as another."""
        name = node.identity.name
        for memory in (
            self._reports,
            self._read,
            self._clean_since,
            self._unheld,
            self._returning,
            self._were_marked,
            self.refusals,
        ):
            memory.pop(name, None)
        self._let_go.discard(name)
        self._breaker.note(name, None)

    def _starting(self, node: NodeState) -> bool:
        return starting(node, self._given.clock.now(), self._given.settings.boot_grace)

    def _note(self, node: NodeState, sick: Fault | None) -> None:
        """Before a gate is asked: the share that it judges has this node in it."""
        rules, now = self._given.rules, self._given.clock.now()
        by_person = node.open_request is not None or (sick is not None and sick.code == CODE)
        aside = by_person or workflow_id(node) in self.handed_off
        beheld = Beheld(sick, rank(node, sick, rules, now), aside, now)
        member = member_of(node, rules.scopes(node), rules.breaker.scope, beheld)
        self._breaker.note(node.identity.name, member)

    def _remember_refusal(
        self, node: NodeState, sick: Fault | None, blocked: str, now: datetime
    ) -> None:
        no = refusal(node, sick, now)
        if sick is None or no is Refusal.MARKED or (no is None and not blocked):
            self.refusals.pop(node.identity.name, None)
        else:
            word = no.value if no else blocked.split(":")[0].replace(" ", "-")
            self.refusals[node.identity.name] = word

    def _remember_clean(self, node: NodeState, report: Report, now: datetime) -> None:
        pending = node.mark is not None and node.mark.state is MarkState.PENDING
        if pending and report.clean:
            self._clean_since.setdefault(node.identity.name, now)
        else:
            self._clean_since.pop(node.identity.name, None)

    def _blocked(self, node: NodeState, report: Report) -> str:
        if standing(node) is not Standing.FREE or node.open_request:
            return ""
        reasons = (gate(node, report) for gate in self._gates)
        return next((reason for reason in reasons if reason), "")
