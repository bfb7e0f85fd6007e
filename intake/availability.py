"""Node availability as the watcher sees it, in both readings.

`serving`: the share of nodes that take new work now: Ready, schedulable, not held, not leaving. It
is the capacity that a scheduler has, whatever took the rest away. `machines`: the share of machines
that are not out of service for hardware: held for a fault of the machine itself. A cordon, an
upgrade or a false alarm of a monitor does not count there; it is the reading to compare with
published figures, which count a machine by its serial number and out only while broken.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.registry import Collector

from fleet.fault import FaultName
from fleet.figure import AVAILABILITY, LEADING, MACHINES_OUT, NODES, Figure
from fleet.node import NodeState
from intake.tally import is_held

STATES = ("serving", "held", "not-ready", "unproven", "cordoned")

NOT_HARDWARE = frozenset(
    {
        FaultName.APPLICATION,
        FaultName.CONFIG_MISMATCH,
        FaultName.MONITOR_SILENT,
        FaultName.UNKNOWN_CODE,
    }
)
"""Faults that say nothing against the machine: the job, its set-up, our own eyes, a word that
nobody knows."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Nodes by state; machines, and how many of them are out for hardware."""

    states: Counter[str]
    machines: int
    out: int

    @property
    def serving(self) -> float | None:
        """Share of nodes that serve; None where there is no node."""
        total = self.states.total()
        return self.states["serving"] / total if total else None

    @property
    def by_machine(self) -> float | None:
        """Share of machines that are not out for hardware."""
        return 1 - self.out / self.machines if self.machines else None


def availability_of(nodes: Collection[NodeState]) -> Availability:
    """Count nodes and machines."""
    machines = {each.identity.machine for each in nodes}
    out = {each.identity.machine for each in nodes if out_for_hardware(each)}
    return Availability(Counter(state_of(each) for each in nodes), len(machines), len(out))


def state_of(node: NodeState) -> str:
    """How a node stands. One that is held counts as held, whatever else it is."""
    if is_held(node):
        return "held"
    if node.ready != "True" or node.deleting:
        return "not-ready"
    if node.unproven:
        return "unproven"
    return "cordoned" if node.unschedulable else "serving"


def out_for_hardware(node: NodeState) -> bool:
    """Held for a fault of the machine; a hold by cordon is in the midst of a repair."""
    if not is_held(node):
        return False
    if node.hold is None:
        return True
    return node.hold.value not in NOT_HARDWARE


class AvailabilityFigures(Collector):
    """A live series by the watcher that leads; `nodes` answers None in one that does not."""

    def __init__(self, nodes: Callable[[], Collection[NodeState] | None]) -> None:
        self._nodes = nodes

    def collect(self) -> Iterator[Metric]:
        """As it stands. Followers show that they do not lead and nothing else."""
        nodes = self._nodes()
        yield _shown(LEADING, [({}, 0.0 if nodes is None else 1.0)])
        if nodes is None:
            return
        found = availability_of(nodes)
        yield _shown(NODES, [({"state": each}, float(found.states[each])) for each in STATES])
        yield _shown(MACHINES_OUT, [({}, float(found.out))])
        readings = (("serving", found.serving), ("machines", found.by_machine))
        yield _shown(
            AVAILABILITY,
            [({"reading": name}, share) for name, share in readings if share is not None],
        )


def _shown(figure: Figure, samples: list[tuple[dict[str, str], float]]) -> Metric:
    metric = Metric(figure.name, figure.text, figure.kind.value)
    for labels, value in samples:
        metric.add_sample(figure.name, labels, value)
    return metric
