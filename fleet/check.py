"""Names of the checks that a verify can run on a node; the policy file lists them by these names."""

from enum import StrEnum


class Check(StrEnum):
    """What each proves is said where it is implemented (`probes/checks/`)."""

    KERNEL_LOG = "kernel-log"
    PRESENCE = "presence"
    PCI = "pci"
    RECOVERY_ACTION = "recovery-action"
    MEMORY = "memory"
