"""Plays a script: each trouble at its time, in a task of its own, with whatever follows it."""

import asyncio
import time
from collections.abc import Callable, Mapping

from simulator.demo.install import NAMESPACE
from simulator.demo.people import NotAsked, People
from simulator.demo.scenario import Reach, Scenario, Trouble
from simulator.demo.stage import Stage
from simulator.observer.sight import Json

Tell = Callable[[str, str], None]


class Play:
    """One run of a script. `amiss` gathers what people waited for in vain."""

    def __init__(self, scenario: Scenario, reach: Reach) -> None:
        self._scenario = scenario
        self._reach = reach
        self.amiss: list[str] = []

    async def run(self) -> None:
        """Until the last trouble has come and been dealt with by those who play."""
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for trouble in self._scenario.troubles:
                group.create_task(self._come(trouble, begun))

    async def _come(self, trouble: Trouble, begun: float) -> None:
        await asyncio.sleep(max(0.0, begun + trouble.after - time.monotonic()))
        if trouble.happening.told:
            self._reach.tell(trouble.node, trouble.happening.told)
        try:
            await trouble.happening.happen(trouble.node, self._reach)
        except NotAsked as problem:
            self.amiss.append(str(problem))


def reach_of(stage: Stage, nodes: Mapping[str, Json], tell: Tell, yourself: bool) -> Reach:
    """What the happenings of a run on this stage may reach."""
    people = People(stage.temporal, NAMESPACE, nodes, stage.ui, yourself)
    return Reach(stage.machines, stage.api, people, nodes, tell)
