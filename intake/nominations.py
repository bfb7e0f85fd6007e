"""Marks on nodes against the list of open incidents: where the two disagree. Pure.

The list lags behind, so it only nominates; whether an incident is open is decided by its id.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fleet.mark import MarkState
from fleet.names import dry_workflow_id, incident_workflow_id
from fleet.node import NodeState
from intake.marks import Standing, standing


@dataclass(frozen=True, slots=True)
class Nominations:
    """`runless`: nodes whose mark says that a run owns them, and none is listed. `unmarked`: nodes
    without our mark whose incident is listed. `nodeless`: incidents whose node is not there, or is
    another machine by now. `rehearsed`: nodes whose incident in dry run is listed."""

    runless: tuple[NodeState, ...]
    unmarked: tuple[NodeState, ...]
    nodeless: tuple[str, ...]
    rehearsed: tuple[NodeState, ...] = ()


def workflow_id(node: NodeState) -> str:
    """The id of the incident that this machine under this name has or would have."""
    identity = node.identity
    return incident_workflow_id(identity.cluster, identity.name, identity.machine)


def nominate(nodes: Iterable[NodeState], open_ids: frozenset[str], cluster: str) -> Nominations:
    """Compare every node with every incident that looks open; other clusters' are left alone."""
    known = {workflow_id(node): node for node in nodes}
    rehearsals = {rehearsal_id(node): node for node in known.values()}
    ours = _of(cluster, incident_workflow_id, open_ids)
    dry = _of(cluster, dry_workflow_id, open_ids)
    return Nominations(
        runless=tuple(
            node for each, node in known.items() if each not in open_ids and _taken_up(node)
        ),
        unmarked=tuple(
            node for each in ours if (node := known.get(each)) and standing(node) is Standing.FREE
        ),
        nodeless=tuple(
            each for each in (*ours, *dry) if each not in known and each not in rehearsals
        ),
        rehearsed=tuple(rehearsals[each] for each in dry if each in rehearsals),
    )


def rehearsal_id(node: NodeState) -> str:
    """The id of the incident in dry run that it has or would have."""
    identity = node.identity
    return dry_workflow_id(identity.cluster, identity.name, identity.machine)


def _of(cluster: str, named: Callable[[str, str, str], str], open_ids: frozenset[str]) -> list[str]:
    """The ids of a cluster's incidents of one kind."""
    prefix = named(cluster, "", "").rstrip("/") + "/"
    return sorted(each for each in open_ids if each.startswith(prefix))


def _taken_up(node: NodeState) -> bool:
    mark = node.mark
    return (
        mark is not None
        and mark.uid == node.identity.uid
        and mark.state in (MarkState.OWNED, MarkState.PROBATION)
    )
