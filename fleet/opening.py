"""What opens an incident: the node, our mark on it, and where it stands in the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.mark import Mark
from fleet.names import dry_workflow_id, incident_workflow_id
from fleet.node import NodeIdentity


@dataclass(frozen=True, slots=True)
class Opening:
    """`scopes` maps a scope (`cluster`, `pool`, `rack`, `nvlink-domain`) to this node's key in it.

    A scope that the node has no label for is absent: unknown is not a scope of its own. In a `dry`
    run everything is decided, recorded and shown, and nothing is touched: the mark is on no node.
    """

    node: NodeIdentity
    mark: Mark
    scopes: Mapping[str, str] = field(default_factory=dict)
    dry: bool = False

    @property
    def workflow_id(self) -> str:
        """The workflow that owns the incident."""
        named = dry_workflow_id if self.dry else incident_workflow_id
        return named(self.node.cluster, self.node.name, self.node.machine)
