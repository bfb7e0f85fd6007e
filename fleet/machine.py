"""A machine as whoever runs it sees it: its power, and what he is asked to do to it.

Nodes say what they say of themselves; this is the other witness, and the other hand.
"""

from dataclasses import dataclass
from enum import StrEnum

from fleet.node import Manifest


class Power(StrEnum):
    """What is known of a machine. OFF: it does nothing until it is asked to start. GONE: it never
    comes back. UNKNOWN justifies nothing."""

    ON = "on"
    OFF = "off"
    GONE = "gone"
    UNKNOWN = "unknown"


class Change(StrEnum):
    """What a provider may be able to do. A provider without `restart` may `stop` and `start`; one
    with `launch` can have a successor Ready before the old machine goes."""

    RESTART = "restart"
    STOP = "stop"
    START = "start"
    POWER_CYCLE = "power-cycle"
    LAUNCH = "launch"
    TERMINATE = "terminate"


class OperationState(StrEnum):
    """How far an operation is. FAILED: it did not happen, and will not under this id."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """By what a provider finds a machine: its own id for it, the board's UUID, the node's name."""

    node: str
    provider_id: str = ""
    system_uuid: str = ""

    @classmethod
    def of(cls, manifest: Manifest) -> "MachineAddress":
        """The address that a Node object carries."""
        info = (manifest.get("status") or {}).get("nodeInfo") or {}
        provider_id = str((manifest.get("spec") or {}).get("providerID") or "")
        name = str(manifest["metadata"]["name"])
        return cls(name, provider_id, str(info.get("systemUUID") or ""))


@dataclass(frozen=True, slots=True)
class Operation:
    """One change under one id, as the provider has it.

    `machine` is the one that was named when it was begun. `reason` is the provider's short code of
    a failure (`capacity`), `detail` one sentence for people. `successor` is the node name under
    which a launched machine registers.
    """

    id: str
    change: Change
    machine: MachineAddress
    state: OperationState
    reason: str = ""
    detail: str = ""
    successor: str = ""
