"""What a script is made of: the fleet, the troubles that come over it, and the end of each.

Nothing here touches the world; happenings do, by what `Reach` gives them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from simulator.client import Api
from simulator.demo.fleet import Fleet
from simulator.demo.people import People
from simulator.hardware.machine import Machine
from simulator.observer import sight
from simulator.observer.promise import Promises
from simulator.observer.sight import Json
from simulator.observer.transcript import Write

LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Reach:
    """All that a happening may reach: machines by their own names, the API server as some user,
    Temporal as people do, and the nodes as the audit shows them."""

    machines: Mapping[str, Machine]
    api: Callable[[str], Api]
    people: People
    nodes: Mapping[str, Json]
    tell: Callable[[str, str], None]

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait until something is so; it is looked at as often as the audit is read."""
        while True:
            if so():
                return
            await asyncio.sleep(LOOK_SECONDS)

    def state(self, node: str) -> str:
        """The state of a node's mark: pending, owned, probation, empty without one."""
        return str((sight.mark(self.nodes.get(node, {})) or {}).get("state", ""))


class Happening(Protocol):
    """Something that is done to the world. `fault`: it is meant to be found and dealt with."""

    fault: ClassVar[bool]

    @property
    def told(self) -> str:
        """In words, for the view; empty where nothing is to be said."""
        ...

    async def happen(self, node: str, reach: Reach) -> None:
        """Do it, and whatever follows it by the script."""
        ...


@dataclass(frozen=True, slots=True)
class Trouble:
    """`happening` comes over `node` after so many seconds; its incident ends as `end` by `steps`.

    `end` None: there must be no incident. `maybe`: there may also be none. `passes`: it ends by
    itself, so it may pass unseen while nobody can be told.
    """

    kind: str
    node: str
    after: float
    happening: Happening
    end: str | None
    steps: tuple[str, ...] = ()
    maybe: bool = False
    passes: bool = False

    @property
    def expected(self) -> str:
        """In words."""
        if self.end is None:
            return "nothing"
        return f"{self.end} by {' and '.join(self.steps) or 'nothing'}"


Claim = Callable[[Sequence[Write], Promises], list[str]]
"""Something else that the run must show; says in words what it did not."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run. `absence` is when, after the start, something goes away if asked to."""

    seed: int
    fleet: Fleet
    troubles: tuple[Trouble, ...]
    absence: float
    claims: tuple[Claim, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes that are there from the start."""
        return self.fleet.nodes

    @property
    def faults(self) -> tuple[Trouble, ...]:
        """The troubles that are there to be found."""
        return tuple(each for each in self.troubles if each.happening.fault)
