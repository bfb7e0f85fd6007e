"""The checks that a verify can run on a node, by the names that the policy file uses."""

from enum import StrEnum
from typing import Final


class Check(StrEnum):
    """What each proves is said where it is implemented (`probes/checks/`).

    COMPUTE, ALL_REDUCE and DCGM_DIAG are active: they take the node's GPUs for themselves, so they
    are run only by a verify, or by a person, and never by the agent.
    """

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
    LEFT_OVERS = "left-overs"
    DCGM = "dcgm"
    SETTINGS = "settings"
    COMPUTE = "compute"
    ALL_REDUCE = "all-reduce"
    DCGM_DIAG = "dcgm-diag"


ACTIVE: Final = (Check.COMPUTE, Check.ALL_REDUCE, Check.DCGM_DIAG)
"""What they find the agent can neither see for itself nor see the end of."""

PAIRS: Final = "pairs"
"""What a trial in pairs says of a node. It takes two nodes, so no policy lists it among checks."""

FOUND_BY_STEPS: Final = (*ACTIVE, PAIRS)
"""All whose findings only a step on the node leaves."""
