"""The script of a run: which GPU of which node breaks when and how, and how that must end.

Everything follows from the seed; nothing here touches the world.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from simulator.hardware.nature import APPLICATION, LINK_FLAP, LOST, MEMORY, STUBBORN_MEMORY, Nature

FEWEST_NODES, MOST_NODES = 6, 32
GPUS = 8
RACK_SIZE = 4
FIRST_AFTER, LAST_AFTER = 1.0, 12.0
"""Faults strike within this many seconds of the fleet being up."""


@dataclass(frozen=True, slots=True)
class Strike:
    """A GPU that breaks `after` seconds, and how its incident must end (None: there is none)."""

    node: str
    gpu: int
    nature: Nature
    after: float
    end: str | None
    steps: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """In words."""
        if self.end is None:
            return "nothing"
        return f"{self.end} by {' and '.join(self.steps) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run.

    `blind` is a node whose kernel log cannot be read from the start: nothing is known of it, so
    nothing may be done to it. `absence` is when, after the start, something goes away if asked to.
    """

    seed: int
    nodes: tuple[str, ...]
    strikes: tuple[Strike, ...]
    blind: str
    absence: float

    def rack(self, node: str) -> str:
        """The rack of a node."""
        return f"rack-{self.nodes.index(node) // RACK_SIZE + 1}"


ENDS: Sequence[tuple[Nature, str | None, tuple[str, ...]]] = (
    (MEMORY, "repaired", ("reset-gpu",)),
    (LOST, "repaired", ("reboot",)),
    (STUBBORN_MEMORY, "repaired", ("reset-gpu", "reboot")),
    (APPLICATION, None, ()),
    (LINK_FLAP, "recovered", ()),
)


def write_scenario(seed: int, count: int = 8) -> Scenario:
    """The script that this seed stands for; `count` nodes, each struck at most once."""
    dice = Random(seed)  # noqa: S311
    nodes = tuple(f"node-{number}" for number in range(1, count + 1))
    *struck, blind = dice.sample(nodes, len(ENDS) + 1)
    order = dice.sample(ENDS, len(ENDS))
    times = sorted(round(dice.uniform(FIRST_AFTER, LAST_AFTER), 1) for _ in ENDS)
    strikes = (
        Strike(node, dice.randrange(GPUS), nature, after, end, steps)
        for node, (nature, end, steps), after in zip(struck, order, times, strict=True)
    )
    return Scenario(seed, nodes, tuple(strikes), blind, round(dice.uniform(0.0, 15.0), 1))
