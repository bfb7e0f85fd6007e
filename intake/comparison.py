"""Compares marks with open incidents: once at the start of a term, then every few minutes.

It finds what no change of a node shows: a run that is gone, a node that vanished or came back
while nobody watched. The list of incidents lags, so each finding is asked about by its id first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from fleet.errors import Ambiguous, Refused, Transient
from fleet.node import NodeState
from intake.nominations import nominate, workflow_id
from intake.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Findings:
    """Who is told of what was found, each after the incident itself was asked."""

    run_gone: Callable[[NodeState], Awaitable[None]]
    node_gone: Callable[[str], None]
    unmarked: Callable[[NodeState], None]
    handed_off: Callable[[frozenset[str]], None]
    rehearsal: Callable[[NodeState], None]


class Comparison:
    """`suspect` has one node looked at soon, without waiting for the next round."""

    def __init__(
        self, given: Surroundings, nodes: Mapping[str, NodeState], findings: Findings
    ) -> None:
        self.rounds = 0
        self._incidents = given.incidents
        self._cluster = given.cluster
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._backoff = given.backoff()
        self._nodes = nodes
        self._findings = findings
        self._suspects: set[str] = set()
        self._suspected = asyncio.Event()
        self._unmarked: set[tuple[str, str]] = set()

    def suspect(self, node: str) -> None:
        """The engine said that this node's incident is closed, but its mark says owned."""
        self._suspects.add(node)
        self._suspected.set()

    async def run(self) -> None:
        """Compare until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._compare_for_ever())
            group.create_task(self._look_at_suspects())
            group.create_task(self._hear_of_hand_offs())

    async def compare(self) -> None:
        """One round; raises Transient where Temporal is away, having done harm to nothing."""
        self._findings.handed_off(await self._incidents.handed_off_ids())
        found = nominate(self._nodes.values(), await self._incidents.open_ids(), self._cluster)
        for node in found.runless:
            await self._look_at(node)
        for workflow in found.nodeless:
            if await self._incidents.is_open(workflow):
                self._findings.node_gone(workflow)
        for node in found.rehearsed:
            self._findings.rehearsal(node)
        await self._look_at_unmarked(found.unmarked)
        self.rounds += 1

    async def _compare_for_ever(self) -> None:
        while True:
            wait = self._settings.compare_every.total_seconds()
            try:
                await self.compare()
            except (Transient, Ambiguous, Refused) as problem:
                self._journal.trouble("compare", "cannot-compare-marks", because=problem)
                wait = min(wait, self._backoff.next())
            else:
                self._backoff.reset()
                self._journal.over("compare", "comparing-marks-again")
            await self._clock.sleep(wait)

    async def _hear_of_hand_offs(self) -> None:
        """More often than all else: what people have is no doubt of the sensor any more."""
        while True:
            await self._clock.sleep(self._settings.hand_offs_every.total_seconds())
            with suppress(Transient, Ambiguous, Refused):  # the next whole round says so
                self._findings.handed_off(await self._incidents.handed_off_ids())

    async def _look_at_suspects(self) -> None:
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            while self._suspects:
                await self._look_at_suspect(self._suspects.pop())

    async def _look_at_suspect(self, name: str) -> None:
        try:
            if node := self._nodes.get(name):
                await self._look_at(node)
        except (Transient, Ambiguous, Refused) as problem:
            # Not lost: its next report, or the next round, finds it again.
            self._journal.trouble("compare", "cannot-compare-marks", because=problem)

    async def _look_at(self, node: NodeState) -> None:
        """The record is from before the question: what was written since refuses our write."""
        if not await self._incidents.is_open(workflow_id(node)):
            await self._findings.run_gone(node)

    async def _look_at_unmarked(self, nodes: tuple[NodeState, ...]) -> None:
        """An incident that is just closing looks the same, so it takes two rounds in a row."""
        before, self._unmarked = self._unmarked, set()
        for node in nodes:
            key = (node.identity.name, node.identity.uid)
            if not await self._incidents.is_open(workflow_id(node)):
                continue
            self._unmarked.add(key)
            if key in before or node.cool_down is not None:
                self._findings.unmarked(node)
