"""The kinds of fault, what each is called, and the fault as it stands on a part of a node.

The kinds are the keys of the policy file. What is done about each is policy and not written here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.part import Part


class FaultName(StrEnum):
    """A kind of fault; meaning and evidence are in `docs/glossary.md` and the default policy."""

    GPU_LOST = "gpu-lost"
    DRIVER_HUNG = "driver-hung"
    FIRMWARE_HALTED = "firmware-halted"
    UNCONTAINED_MEMORY = "uncontained-memory"
    CONTAINED_MEMORY = "contained-memory"
    MEMORY_EXHAUSTED = "memory-exhausted"
    NVLINK_ERROR = "nvlink-error"
    FABRIC_NOT_READY = "fabric-not-ready"
    NIC_MISSING = "nic-missing"
    NIC_DEGRADED = "nic-degraded"
    PCIE_DEGRADED = "pcie-degraded"
    THERMAL = "thermal"
    POWER = "power"
    HOST_MEMORY = "host-memory"
    HOST_UNREACHABLE = "host-unreachable"
    HOST_DEGRADED = "host-degraded"
    CONFIG_MISMATCH = "config-mismatch"
    INFOROM = "inforom"
    WRONG_RESULTS = "wrong-results"
    SLOW = "slow"
    APPLICATION = "application"
    MONITOR_SILENT = "monitor-silent"
    UNKNOWN_CODE = "unknown-code"


class ConditionType(StrEnum):
    """The Node conditions that the agent owns; `True` means healthy."""

    GPU = "gpumend.io/GPU"
    MEMORY = "gpumend.io/Memory"
    FABRIC = "gpumend.io/Fabric"
    NETWORK = "gpumend.io/Network"
    PCIE = "gpumend.io/PCIe"
    THERMAL = "gpumend.io/Thermal"
    DRIVER = "gpumend.io/Driver"
    HOST = "gpumend.io/Host"
    PROBES = "gpumend.io/Probes"


CONDITION_OF: Mapping[FaultName, ConditionType] = {
    FaultName.GPU_LOST: ConditionType.GPU,
    FaultName.DRIVER_HUNG: ConditionType.DRIVER,
    FaultName.FIRMWARE_HALTED: ConditionType.GPU,
    FaultName.UNCONTAINED_MEMORY: ConditionType.MEMORY,
    FaultName.CONTAINED_MEMORY: ConditionType.MEMORY,
    FaultName.MEMORY_EXHAUSTED: ConditionType.MEMORY,
    FaultName.NVLINK_ERROR: ConditionType.FABRIC,
    FaultName.FABRIC_NOT_READY: ConditionType.FABRIC,
    FaultName.NIC_MISSING: ConditionType.NETWORK,
    FaultName.NIC_DEGRADED: ConditionType.NETWORK,
    FaultName.PCIE_DEGRADED: ConditionType.PCIE,
    FaultName.THERMAL: ConditionType.THERMAL,
    FaultName.POWER: ConditionType.THERMAL,
    FaultName.HOST_MEMORY: ConditionType.HOST,
    FaultName.HOST_UNREACHABLE: ConditionType.HOST,
    FaultName.HOST_DEGRADED: ConditionType.HOST,
    FaultName.CONFIG_MISMATCH: ConditionType.DRIVER,
    FaultName.INFOROM: ConditionType.GPU,
    FaultName.WRONG_RESULTS: ConditionType.GPU,
    FaultName.SLOW: ConditionType.GPU,
    FaultName.MONITOR_SILENT: ConditionType.PROBES,
    FaultName.UNKNOWN_CODE: ConditionType.GPU,
}
"""Where a fault shows. `application` shows nowhere: it belongs to the job and is a metric."""


class Severity(StrEnum):
    """How bad a finding is. No order by comparison: `unknown` is not between two others."""

    INFO = "info"
    WARNING = "warning"
    DEGRADED = "degraded"
    FATAL = "fatal"
    UNKNOWN = "unknown"


class Advice(StrEnum):
    """What the evidence itself asks for; it may skip steps of a ladder forward, never add one."""

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    REPLACE = "replace"
    HAND_OFF = "hand-off"


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault standing on one part of a node.

    `code` says what showed it (`xid:95`, `nvrm:fallen_off_bus`, `condition:Ready=Unknown`); `since`
    is the agent's or the engine's own first sight; `id` is the keyed identity of the part, empty
    where there is none. `pods` are the UIDs of the pods whose work it hit, at most four, as far as
    that can be told. Serial numbers and raw log lines never enter here: every reader of nodes
    sees them.
    """

    part: Part
    name: FaultName
    code: str
    advice: Advice
    count: int
    since: datetime
    id: str = ""
    pods: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What makes two sightings the same fault: part and name."""
        return f"{self.part} {self.name}"


def camel_case(name: str) -> str:
    """`gpu-lost` as a condition reason: `GpuLost`."""
    return "".join(word.capitalize() for word in name.split("-"))
