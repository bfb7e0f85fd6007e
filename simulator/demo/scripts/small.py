"""The short script: five faults, one of each way that the mildest ladders can go, one blind node,
and one that joins. Kills, sabotages and most end-to-end tests play it.
"""

from collections.abc import Sequence
from random import Random

from simulator.demo.claims import proven
from simulator.demo.fleet import GPUS, small_fleet
from simulator.demo.happenings.hardware import Breaks, LosesLog
from simulator.demo.happenings.identity import Joins
from simulator.demo.scenario import Scenario, Trouble
from simulator.hardware.nature import (
    APPLICATION,
    LINK_FLAP,
    LOST,
    MEMORY,
    STUBBORN_MEMORY,
    Cure,
    Nature,
)

BUDGETS = {"cluster": 3, "rack": 2}
FIRST_AFTER, LAST_AFTER = 1.0, 12.0
"""Faults strike within this many seconds of the fleet being up."""
JOINS_AFTER = 0.5

ENDS: Sequence[tuple[Nature, str | None, tuple[str, ...]]] = (
    (MEMORY, "repaired", ("reset-gpu",)),
    (LOST, "repaired", ("reboot",)),
    (STUBBORN_MEMORY, "repaired", ("reset-gpu", "reboot")),
    (APPLICATION, None, ()),
    (LINK_FLAP, "recovered", ()),
)


def write_small(seed: int, count: int) -> Scenario:
    """The short script that this seed stands for; `count` nodes, each struck at most once; the last
    one joins, and is spared."""
    dice = Random(seed)  # noqa: S311
    fleet = small_fleet(count, BUDGETS)
    *struck, blind = dice.sample(fleet.nodes, len(ENDS) + 1)
    order = dice.sample(ENDS, len(ENDS))
    times = sorted(round(dice.uniform(FIRST_AFTER, LAST_AFTER), 1) for _ in ENDS)
    strikes = tuple(
        Trouble(
            nature.name,
            node,
            after,
            Breaks(dice.randrange(GPUS), nature),
            end,
            steps,
            passes=Cure.TIME in nature.cures,
        )
        for node, (nature, end, steps), after in zip(struck, order, times, strict=True)
    )
    blinded = Trouble("blind", blind, 0.0, LosesLog(), None)
    new = fleet.berths[-1].node
    joins = Trouble("new-node", new, JOINS_AFTER, Joins(new), None)
    absence = round(dice.uniform(0.0, 15.0), 1)
    return Scenario(seed, fleet, (blinded, joins, *strikes), absence, (proven(new),))
