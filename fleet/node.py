"""A Kubernetes Node as we see it: the small record that we keep of 14 KB of manifest.

Reading is tolerant (what is absent is empty), since other writers share the object; only our own
annotation is strict, and a broken one is said to be broken, not absent.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.instant import parse_instant
from fleet.mark import Mark, parse_mark
from fleet.names import (
    COOL_DOWN_ANNOTATION,
    HOLD_TAINT,
    MANAGED_LABEL,
    MARK_ANNOTATION,
    OPEN_ANNOTATION,
    PAUSE_ANNOTATION,
    PROOF_ANNOTATION,
    UNPROVEN_TAINT,
)
from fleet.open_request import OpenRequest, parse_open_request
from fleet.proof import NEVER, Proof, parse_proof

Manifest = Mapping[str, Any]
"""An object of the Kubernetes API as parsed JSON."""


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Which node: cluster, name, the UID of the object, and the machine behind it."""

    cluster: str
    name: str
    uid: str
    machine: str


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint; `value` is empty where it has none, `added` its `timeAdded` as written.

    Taints can only be written back as a whole list, so what others wrote must survive in full.
    """

    key: str
    value: str
    effect: str
    added: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A Node condition as written, ours or another's; `heartbeat` is None where never renewed."""

    type: str
    status: str
    reason: str
    message: str
    heartbeat: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Node at one resourceVersion.

    `cool_down`: a person took our hold away; until this instant nobody holds the node again.
    `created` is when the Node object was made. `opened` is a person's word that it is sick,
    whether it still stands or not. `proof` is what is remembered of its last proof.
    """

    identity: NodeIdentity
    resource_version: str
    boot_id: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    conditions: tuple[Condition, ...]
    unschedulable: bool
    deleting: bool
    allocatable: Mapping[str, str]
    mark: Mark | None
    mark_problem: str = ""
    pause: str | None = None
    cool_down: datetime | None = None
    created: datetime | None = None
    opened: OpenRequest | None = None
    open_problem: str = ""
    proof: Proof = NEVER

    @property
    def open_request(self) -> OpenRequest | None:
        """What a person says is wrong, while it stands: not taken up yet, or by this mark."""
        mark = self.mark if self.mark and self.mark.uid == self.identity.uid else None
        stands = self.opened and self.opened.incident == (mark.id if mark else "")
        return self.opened if stands else None

    @property
    def hold(self) -> Taint | None:
        """Our hold taint, if it is there."""
        return next((taint for taint in self.taints if taint.key == HOLD_TAINT), None)

    @property
    def unproven(self) -> Taint | None:
        """The taint that keeps work off until the node is proven, if it is there."""
        return next((taint for taint in self.taints if taint.key == UNPROVEN_TAINT), None)

    @property
    def managed(self) -> bool:
        """False where people opted the node out by label."""
        return self.labels.get(MANAGED_LABEL, "true").lower() != "false"

    @property
    def ready(self) -> str:
        """Status of the `Ready` condition: True, False, or Unknown where it is absent."""
        found = (each.status for each in self.conditions if each.type == "Ready")
        return next(found, "Unknown")


def machine_of(provider_id: str, system_uuid: str, uid: str) -> str:
    """First 8 hex digits over what names the machine itself; the Node UID where nothing does.

    The same machine may come back as a new Node object, and another machine under the old name.
    """
    known = provider_id or system_uuid
    text = f"{provider_id}\n{system_uuid}" if known else uid
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_node(manifest: Manifest, cluster: str) -> NodeState:
    """Read a Node; KeyError only where the server broke its own contract (no name, no UID)."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    status = manifest.get("status") or {}
    info = status.get("nodeInfo") or {}
    annotations = metadata.get("annotations") or {}
    mark, problem = _read_mark(annotations.get(MARK_ANNOTATION))
    opened, open_problem = _read_opened(annotations.get(OPEN_ANNOTATION))
    machine = machine_of(spec.get("providerID", ""), info.get("systemUUID", ""), metadata["uid"])
    return NodeState(
        identity=NodeIdentity(cluster, metadata["name"], metadata["uid"], machine),
        resource_version=metadata.get("resourceVersion", ""),
        boot_id=info.get("bootID", ""),
        labels=metadata.get("labels") or {},
        taints=tuple(
            Taint(each["key"], each.get("value", ""), each["effect"], each.get("timeAdded") or "")
            for each in spec.get("taints") or ()
        ),
        conditions=tuple(_read_condition(each) for each in status.get("conditions") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        deleting="deletionTimestamp" in metadata,
        allocatable=status.get("allocatable") or {},
        mark=mark,
        mark_problem=problem,
        pause=annotations.get(PAUSE_ANNOTATION),
        cool_down=_read_instant(annotations.get(COOL_DOWN_ANNOTATION)),
        created=_read_instant(metadata.get("creationTimestamp")),
        opened=opened,
        open_problem=open_problem,
        proof=parse_proof(annotations.get(PROOF_ANNOTATION, "{}")),
    )


def _read_instant(text: str | None) -> datetime | None:
    """What is not an instant is none: a person may have edited it away."""
    try:
        return parse_instant(text) if text else None
    except ValueError:
        return None


def _read_mark(text: str | None) -> tuple[Mark | None, str]:
    if text is None:
        return None, ""
    try:
        return parse_mark(text), ""
    except ValueError as problem:
        return None, str(problem)


def _read_opened(text: str | None) -> tuple[OpenRequest | None, str]:
    if text is None:
        return None, ""
    try:
        return parse_open_request(text), ""
    except ValueError as problem:
        return None, str(problem)


def _read_condition(manifest: Manifest) -> Condition:
    heartbeat = manifest.get("lastHeartbeatTime")
    return Condition(
        type=manifest["type"],
        status=manifest["status"],
        reason=manifest.get("reason", ""),
        message=manifest.get("message", ""),
        heartbeat=parse_instant(heartbeat) if heartbeat else None,
    )
