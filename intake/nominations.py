"""Marks on nodes against the list of open incidents: where the two disagree. Pure.

The list lags behind, so it only nominates; whether an incident is open is decided by its id.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fleet.mark import MarkState
from fleet.names import incident_workflow_id
from fleet.node import NodeState
from intake.marks import Standing, standing


@dataclass(frozen=True, slots=True)
class Nominations:
    """`runless`: nodes whose mark says that a run owns them, and none is listed. `unmarked`: nodes
    without our mark whose incident is listed. `nodeless`: incidents whose node is not there, or is
    another machine by now."""

    runless: tuple[NodeState, ...]
    unmarked: tuple[NodeState, ...]
    nodeless: tuple[str, ...]


def workflow_id(node: NodeState) -> str:
    """The id of the incident that this machine under this name has or would have."""
    identity = node.identity
    return incident_workflow_id(identity.cluster, identity.name, identity.machine)


def nominate(nodes: Iterable[NodeState], open_ids: frozenset[str], cluster: str) -> Nominations:
    """Compare every node with every incident that looks open; other clusters' are left alone."""
    known = {workflow_id(node): node for node in nodes}
    ours = sorted(each for each in open_ids if each.startswith(incident_prefix(cluster)))
    return Nominations(
        runless=tuple(
            node for each, node in known.items() if each not in open_ids and _taken_up(node)
        ),
        unmarked=tuple(
            node for each in ours if (node := known.get(each)) and standing(node) is Standing.FREE
        ),
        nodeless=tuple(each for each in ours if each not in known),
    )


def incident_prefix(cluster: str) -> str:
    """What the ids of a cluster's incidents begin with."""
    return incident_workflow_id(cluster, "", "").rstrip("/") + "/"


def _taken_up(node: NodeState) -> bool:
    mark = node.mark
    return (
        mark is not None
        and mark.uid == node.identity.uid
        and mark.state in (MarkState.OWNED, MarkState.PROBATION)
    )
