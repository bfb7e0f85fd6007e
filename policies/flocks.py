"""Which idle nodes may be tried with each other, and which of them are due for it. Pure.

Who meets whom in a trial is `policies/pairwise.py`; whether a node has work is not known here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.node import NodeState
from fleet.proof import Why
from fleet.proving import ProveTask
from policies.pairs_terms import Pairs
from policies.proving import AGAIN_PARTS, sick, taken_out, why_not
from policies.scopes import LABEL_PREFIX, ScopeLabels, keys_of

GPUS, NVLINK_DOMAIN = "nvidia.com/gpu", "nvlink-domain"
LEAST = 3
"""Nodes of which one can be told to be odd."""
_LONG_AGO = 0.0


@dataclass(frozen=True, slots=True)
class Flock:
    """Idle nodes that may be tried with each other, the one tried longest ago first.

    `one_fabric`: they share an NVLink domain, so what is between them is its fabric.
    """

    named: str
    tasks: tuple[ProveTask, ...]
    one_fabric: bool


@dataclass(frozen=True, slots=True)
class Flocks:
    """What a look for nodes to pair came to; the largest flock first."""

    flocks: tuple[Flock, ...]
    room: int
    due: int
    looked_at: int


def due_for_pairs(
    nodes: Iterable[NodeState], pairs: Pairs, now: datetime
) -> tuple[tuple[NodeState, ...], tuple[NodeState, ...]]:
    """Nodes in service that were tried with others too long ago, the oldest first; before them
    those that were odd and have been repaired since: only a trial lets them serve again. And
    those in service that may be their partners, the one tried longest ago first.
    """
    able = [each for each in nodes if not why_not(each, now) and not sick(each, now)]
    able.sort(key=lambda each: (not _is_odd(each), _paired(each), each.identity.name))
    late = [each for each in able if _is_odd(each) or _is_unpaired(each, pairs, now)]
    partners = [each for each in able if each not in late and each.unproven is None]
    return tuple(late), tuple(partners)


def flock_of(node: NodeState, pairs: Pairs, scopes: ScopeLabels) -> str:
    """What those share that are tried with each other. Nodes with another number of GPUs add up
    with none of the others."""
    more = [each for each in pairs.within if each.startswith(LABEL_PREFIX)]
    keys = keys_of(node.labels, scopes, more)
    shared = [f"{each}/{keys[each]}" for each in pairs.within if each in keys]
    return ", ".join([*shared, f"{node.allocatable.get(GPUS, '0')} GPUs"])


def flocks(tasks: Mapping[str, Sequence[ProveTask]]) -> tuple[Flock, ...]:
    """The flocks by name, the largest first; one alone is none."""
    several = [
        Flock(name, tuple(each), f"{NVLINK_DOMAIN}/" in name)
        for name, each in tasks.items()
        if len(each) > 1
    ]
    return tuple(sorted(several, key=lambda each: (-len(each.tasks), each.named)))


def task_in_pairs(node: NodeState) -> ProveTask:
    """What a trial asks for about a node: one that was odd keeps its taint until it did well."""
    return ProveTask(node.identity, node.boot_id, Why.ODD if _is_odd(node) else Why.PAIRS)


def room_for_pairs(nodes: Iterable[NodeState], pairs: Pairs, now: datetime) -> int:
    """How many a trial may take now, as for a sweep. Who was odd, and is to be tried again, is no
    obstacle to that."""
    out = taken_out(nodes, (Why.PAIRS, Why.ODD))
    return max(0, pairs.at_once - sum(not _is_odd(each) or sick(each, now) for each in out))


def _is_odd(node: NodeState) -> bool:
    return node.unproven is not None and Why.of(node.unproven.value) is Why.ODD


def _is_unpaired(node: NodeState, pairs: Pairs, now: datetime) -> bool:
    proof = node.proof
    fresh = proof.paired is not None and now < proof.paired + pairs.every
    untold = proof.unpaired is not None and now < proof.unpaired + pairs.every / AGAIN_PARTS
    return node.unproven is None and not fresh and not untold


def _paired(node: NodeState) -> float:
    known = [each.timestamp() for each in (node.proof.paired, node.proof.unpaired) if each]
    return max(known, default=_LONG_AGO)
