"""Whose work the faults of a step hit, as its node says just now. Pure.

A report is told again only when something else changes, so who acts reads the conditions anew.
"""

from dataclasses import dataclass
from datetime import datetime

from fleet.fault import FaultName
from fleet.node import Manifest, NodeState
from fleet.request import StepRequest
from policies.own_conditions import read_own

ONE_PROCESS = (FaultName.CONTAINED_MEMORY, FaultName.APPLICATION)
"""Faults that concern nobody but the process that they struck."""
STATIC = "kubernetes.io/config.hash"
"""The annotation by which a static pod is known on its node."""


@dataclass(frozen=True, slots=True)
class Hit:
    """The UIDs of pods that were hit; `told`: every fault names some; `alone`: nobody else is
    concerned by any of the faults.
    """

    pods: frozenset[str] = frozenset()
    told: bool = False
    alone: bool = False

    def has(self, pod: Manifest) -> bool:
        """Whether this pod was hit."""
        return not self.pods.isdisjoint(uids_of(pod))


def uids_of(pod: Manifest) -> tuple[str, ...]:
    """What a pod is called on its node: by its UID, a static one by the hash of its manifest."""
    metadata = pod["metadata"]
    hash_ = (metadata.get("annotations") or {}).get(STATIC)
    return (str(metadata["uid"]), *([str(hash_)] if hash_ else []))


def hit_by(request: StepRequest, node: NodeState, now: datetime) -> Hit:
    """The pods that the request's faults hit. One fault that names none, and others may be.

    A condition that names nobody (any more) takes nothing away from what the incident knew.
    """
    said = {each.key: each.pods for each in read_own(node, now).faults}
    pods = [said.get(each.key) or each.pods for each in request.faults]
    told = bool(pods) and all(pods)
    alone = told and all(each.name in ONE_PROCESS for each in request.faults)
    return Hit(frozenset(uid for each in pods for uid in each), told, alone)
