"""The checks that a verify can run on a node, by the names that the policy file uses."""

from enum import StrEnum


class Check(StrEnum):
    """What each proves is said where it is implemented (`probes/checks/`)."""

    KERNEL_LOG = "kernel-log"
    PRESENCE = "presence"
    PCI = "pci"
    RECOVERY_ACTION = "recovery-action"
    MEMORY = "memory"
    NVLINK = "nvlink"
    FABRIC = "fabric"
    PCIE = "pcie"
    THERMAL = "thermal"
    ADAPTERS = "adapters"
    DRIVER = "driver"
    HOST = "host"
