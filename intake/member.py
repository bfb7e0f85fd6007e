"""What one node is to the breaker of its scope: sick, held back, serving, just born. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.fault import Fault
from fleet.node import NodeState
from intake.admission import Rank, refusal
from intake.marks import Standing, standing
from intake.tally import is_down, is_held

_OPEN = (Standing.PENDING, Standing.OWNED, Standing.UNHELD, Standing.ORPHAN)
"""An incident is open, or a hold of ours is about to be one. Probation is not counted."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node in the scope that the breaker judges as one.

    `sick`: it counts in the share. `waits`: it is free and would be held but for the gates.
    `serves`: new work can land on it. `fault` is what is wrong with it now, held or not; `rank`
    its place in the order of holds while it waits; `born` when its machine was first a Node, None
    where it was one before.
    """

    scope: str
    sick: bool = False
    waits: bool = False
    serves: bool = False
    fault: str = ""
    rank: Rank | None = None
    born: datetime | None = None


@dataclass(frozen=True, slots=True)
class Beheld:
    """What is known of a node beside its record: its worst fault, its place in the order, and
    whether a person has or has found what is wrong, which says nothing of the sensors."""

    sick: Fault | None
    rank: Rank
    aside: bool
    now: datetime


def member_of(node: NodeState, scopes: Mapping[str, str], judged: str, beheld: Beheld) -> Member:
    """`judged` is the breaker's scope; a node without a key in it is in none, named by ''."""
    free = standing(node) is Standing.FREE and refusal(node, beheld.sick, beheld.now) is None
    waits = free and not beheld.aside
    ours = standing(node) in _OPEN and not beheld.aside
    key = scopes.get(judged)
    return Member(
        scope=f"{judged}/{key}" if key else "",
        sick=waits or ours,
        waits=waits,
        serves=not is_held(node) and not is_down(node),
        fault=beheld.sick.name if beheld.sick else "",
        rank=beheld.rank if waits else None,
        born=_born(node),
    )


def _born(node: NodeState) -> datetime | None:
    """A machine whose incident is older than its Node object came back under a new one."""
    if node.created is None or (node.mark and node.mark.opened < node.created):
        return None
    return node.created
