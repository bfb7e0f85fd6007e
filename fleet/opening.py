"""What opens an incident: the node, our mark on it, and where it stands in the fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.mark import Mark
from fleet.names import incident_workflow_id
from fleet.node import NodeIdentity


@dataclass(frozen=True, slots=True)
class Opening:
    """`scopes` maps a scope (`cluster`, `pool`, `rack`, `nvlink-domain`) to this node's key in it.

    A scope that the node has no label for is absent: unknown is not a scope of its own.
    """

    node: NodeIdentity
    mark: Mark
    scopes: Mapping[str, str] = field(default_factory=dict)

    @property
    def workflow_id(self) -> str:
        """The workflow that owns the incident."""
        return incident_workflow_id(self.node.cluster, self.node.name, self.node.machine)
