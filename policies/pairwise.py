"""Find the odd node among those that were tried in pairs. Pure.

A pair that fails accuses both and neither: it takes a third node to decide. So a node is blamed
only when it did well with nobody, and failed with at least two peers that each did well with
somebody else. What could not be tried accuses nobody and clears nobody. Where everything fails,
nobody is blamed: what all have in common is then the suspect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

LEAST_WITNESSES = 2
"""Peers that must have failed with a node and done well with another."""
MOST_PEERS = 6
"""Tries of one node of which nothing can be said: then somebody has to look."""
NODE_LIMIT = 4_096
"""Nodes of one trial; more are tried in groups of their own."""


class Course(StrEnum):
    """How the all-reduce of a pair went. FAILED: hung, wrong or slow."""

    WELL = "well"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two different nodes, in the order of their names, and how it went; raises ValueError."""

    first: str
    second: str
    course: Course

    def __post_init__(self) -> None:
        if not self.first < self.second:
            raise ValueError(f"not a pair in order: {self.first!r}, {self.second!r}")


@dataclass(frozen=True, slots=True)
class Judgement:
    """`odd` are to blame; `well` did well with somebody; of `open` nothing can be said yet.

    `links` are pairs that failed although both did well with others: what is between them.
    """

    odd: tuple[str, ...]
    well: tuple[str, ...]
    open: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


def judge(nodes: Iterable[str], pairs: Iterable[Pair]) -> Judgement:
    """What the pairs so far say of the nodes; a pair that was tried twice went as badly as once."""
    named = sorted(set(nodes))
    well, failed = _peers(pairs)
    odd = [each for each in named if _is_odd(each, well, failed)]
    cleared = [each for each in named if well.get(each)]
    left = [each for each in named if each not in odd and each not in cleared]
    links = sorted(
        {
            (each, peer)
            for each in cleared
            for peer in failed.get(each, ())
            if each < peer and well.get(peer)
        }
    )
    return Judgement(tuple(odd), tuple(cleared), tuple(left), tuple(links))


def next_pairs(nodes: Sequence[str], pairs: Iterable[Pair]) -> tuple[tuple[str, str], ...]:
    """Who is to be tried next, each node at most once; empty where nothing new would be learnt.

    First neighbours, in the order given. Then each node of which nothing can be said yet with one
    that did well; where none did, with another of its own, a few times. Raises ValueError for more
    than NODE_LIMIT nodes.
    """
    named = list(dict.fromkeys(nodes))
    if len(named) > NODE_LIMIT:
        raise ValueError(f"{len(named)} nodes, at most {NODE_LIMIT}: try them in groups")
    tried = list(pairs)
    met = {frozenset((each.first, each.second)) for each in tried}
    if not met:
        return tuple(_ordered(*each) for each in zip(named[::2], named[1::2], strict=False))
    judgement = judge(named, tried)
    others = judgement.well or judgement.open
    taken: set[str] = set()
    found = []
    for node in judgement.open:
        often = sum(node in each for each in met) >= MOST_PEERS
        peer = None if often or node in taken else _fresh(node, others, taken, met)
        if peer:
            taken |= {node, peer}
            found.append(_ordered(node, peer))
    return tuple(found)


def _fresh(
    node: str, others: Iterable[str], taken: set[str], met: set[frozenset[str]]
) -> str | None:
    return next(
        (
            each
            for each in others
            if each not in (taken | {node}) and frozenset((node, each)) not in met
        ),
        None,
    )


def _peers(pairs: Iterable[Pair]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """With whom each node did well, and with whom it failed, at any time."""
    well: dict[str, set[str]] = {}
    failed: dict[str, set[str]] = {}
    for pair in pairs:
        if pair.course is Course.UNKNOWN:
            continue
        known = failed if pair.course is Course.FAILED else well
        for node, peer in ((pair.first, pair.second), (pair.second, pair.first)):
            known.setdefault(node, set()).add(peer)
    for node, peers in failed.items():
        if node in well:
            well[node] -= peers
    return well, failed


def _is_odd(node: str, well: dict[str, set[str]], failed: dict[str, set[str]]) -> bool:
    if well.get(node):
        return False
    witnesses = [peer for peer in failed.get(node, ()) if well.get(peer, set()) - {node}]
    return len(witnesses) >= LEAST_WITNESSES


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
