"""What every node counts as, scope by scope, kept up as nodes change. Pure.

Incremental, since a census of 10,000 nodes is wanted every few seconds. What a count means is not
decided here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.census import Census, ScopeCensus
from fleet.mark import UNDO_CORDON
from fleet.node import NodeState


@dataclass(frozen=True, slots=True)
class Stance:
    """What one node counts as in each of its scopes (`rack/r7`)."""

    scopes: tuple[str, ...]
    held: bool = False
    down: bool = False
    handed_off: bool = False


def stance_of(node: NodeState, scopes: Mapping[str, str], handed_off: bool = False) -> Stance:
    """How the node stands; `scopes` are its keys by scope."""
    named = tuple(f"{scope}/{key}" for scope, key in scopes.items())
    return Stance(named, is_held(node), is_down(node), handed_off)


def is_held(node: NodeState) -> bool:
    """Whether we keep new work off it, by our taint or by a cordon of ours."""
    return node.hold is not None or (node.unschedulable and _cordoned_by_us(node))


def is_down(node: NodeState) -> bool:
    """Whether it serves nobody for a reason that is not our hold.

    A hold lets what runs there run on. What cannot be told to be Ready is down: the budget would
    otherwise lend on a guess.
    """
    cordoned = node.unschedulable and not _cordoned_by_us(node)
    return node.ready != "True" or cordoned or node.deleting


def _cordoned_by_us(node: NodeState) -> bool:
    """A mark of an earlier Node object says nothing about this one."""
    mark = node.mark
    return mark is not None and mark.uid == node.identity.uid and UNDO_CORDON in mark.undo


class Tally:
    """Bounded by the number of nodes. `changes` grows whenever what is counted changes."""

    def __init__(self) -> None:
        self.changes = 0
        self._stances: dict[str, Stance] = {}
        self._sizes: Counter[str] = Counter()
        self._held: Counter[str] = Counter()
        self._down: defaultdict[str, set[str]] = defaultdict(set)
        self._handed_off: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, name: str, stance: Stance) -> None:
        """The node counts as this from now on."""
        if self._stances.get(name) != stance:
            self._take_out(name)
            self._stances[name] = stance
            self._sizes.update(stance.scopes)
            self._held.update(stance.scopes if stance.held else ())
            for scope in stance.scopes if stance.down else ():
                self._down[scope].add(name)
            for scope in stance.scopes if stance.handed_off else ():
                self._handed_off[scope].add(name)
            self.changes += 1

    def drop(self, name: str) -> None:
        """The node is gone."""
        if name in self._stances:
            self._take_out(name)
            self.changes += 1

    def census(self, at: datetime, barred: Mapping[str, str]) -> Census:
        """Every scope that has a node."""
        scopes = {
            scope: ScopeCensus(
                size,
                self._held[scope],
                tuple(sorted(self._down.get(scope, ()))),
                tuple(sorted(self._handed_off.get(scope, ()))),
            )
            for scope, size in self._sizes.items()
        }
        return Census(at, scopes, dict(barred))

    def _take_out(self, name: str) -> None:
        before = self._stances.pop(name, None)
        if before is None:
            return
        _subtract(self._sizes, before.scopes)
        if before.held:
            _subtract(self._held, before.scopes)
        _discard(self._down, before.scopes if before.down else (), name)
        _discard(self._handed_off, before.scopes if before.handed_off else (), name)


def _discard(names: dict[str, set[str]], scopes: Iterable[str], name: str) -> None:
    for scope in scopes:
        names[scope].discard(name)
        if not names[scope]:
            del names[scope]


def _subtract(counts: Counter[str], scopes: Iterable[str]) -> None:
    """A scope that nobody is in any more is not kept: pools and racks come and go."""
    for scope in scopes:
        counts[scope] -= 1
        if not counts[scope]:
            del counts[scope]
