"""The fleet of a run: machines and their places, spare ones that are off, and what runs there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

FEWEST_NODES, MOST_NODES = 7, 64
LARGE_FROM = 28
"""Fleets of so many nodes play the long script, smaller ones the short one."""
GPUS = 8
SMALL_RACK = 4
RACKS = 4
TRAINING, INFERENCE = "training", "inference"
JOB_LABEL = "gpumend.io/job"
LATELY, LONG_AGO = timedelta(hours=1), timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Berth:
    """A machine and where it stands. `machine` is its own name, under which the cloud knows it.

    A spare machine is off until somebody switches it on; `forgetful` is a cloud that deletes the
    Node of a machine that is off; on a `watched` machine the agent's checks run every few seconds.
    `proven` is how long before the run its Node was; one that is None comes with the startup taint,
    whenever it makes its Node. One that is `kept` runs nobody's jobs, and is paused by a person.
    `joins`: it is a spare one that no provider launches, the script switches it on.
    """

    node: str
    machine: str
    rack: str
    pool: str
    spare: bool = False
    forgetful: bool = False
    watched: bool = False
    proven: timedelta | None = LATELY
    kept: bool = False
    joins: bool = False

    @property
    def provider_id(self) -> str:
        """As the Node says it."""
        return f"simulated://{self.machine}"


@dataclass(frozen=True, slots=True)
class Load:
    """A workload: so many pods of so many GPUs. `may_miss` is the `maxUnavailable` of its
    PodDisruptionBudget, None where it has none; `pool` and `node` say where it may run."""

    name: str
    replicas: int
    gpus: int
    may_miss: int | None = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    pool: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Everything that stands there before anything breaks, and the budgets of its policy."""

    berths: tuple[Berth, ...]
    loads: tuple[Load, ...]
    budgets: Mapping[str, int]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that are there from the start."""
        return tuple(each.node for each in self.berths if not each.spare)

    @property
    def size(self) -> int:
        """How many nodes it has once all have come that come by the script."""
        return len(self.nodes) + sum(each.joins for each in self.berths)

    def of_pool(self, pool: str) -> tuple[str, ...]:
        """Its nodes from the start."""
        return tuple(each.node for each in self.berths if each.pool == pool and not each.spare)

    def of_rack(self, rack: str) -> tuple[str, ...]:
        """Its nodes from the start."""
        return tuple(each.node for each in self.berths if each.rack == rack and not each.spare)


def small_fleet(count: int, budgets: Mapping[str, int]) -> Fleet:
    """One pool in racks of four, of which the last node joins by the script; a pod waits for it.

    Half a node a pod: two thirds of the others are used, so there is room.
    """
    there = [_small_berth(number) for number in range(1, count)]
    last = replace(_small_berth(count), spare=True, joins=True, proven=None)
    replicas = max(1, len(there) * 2 // 3)
    loads = [Load(name, replicas, GPUS // 2) for name in ("train", "serve")]
    return Fleet((*there, last), (*loads, waiting_for(last.node)), budgets)


def _small_berth(number: int) -> Berth:
    name = f"node-{number}"
    return Berth(name, name, f"rack-{(number - 1) // SMALL_RACK + 1}", TRAINING)


def waiting_for(node: str) -> Load:
    """A pod that may run on this node alone, which is not there yet."""
    return Load(f"for-{node}", 1, GPUS // 2, may_miss=None, node=node)


def large_berths(count: int) -> tuple[Berth, ...]:
    """Four racks; the last one is the pool of inference."""
    return tuple(_large_berth(number, count) for number in range(1, count + 1))


def _large_berth(number: int, count: int) -> Berth:
    rack = (number - 1) * RACKS // count + 1
    pool = INFERENCE if rack == RACKS else TRAINING
    return Berth(f"node-{number}", f"node-{number}", f"rack-{rack}", pool)
