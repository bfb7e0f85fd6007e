"""What each fault means, in a few words for whoever was paged. Evidence and reasons are in the
shipped policy, next to what is done about it.
"""

from collections.abc import Mapping

from fleet.fault import FaultName

MEANING: Mapping[FaultName, str] = {
    FaultName.GPU_LOST: "a GPU does not answer any more",
    FaultName.DRIVER_HUNG: "the GPU driver hangs",
    FaultName.FIRMWARE_HALTED: "the firmware of a GPU has stopped",
    FaultName.UNCONTAINED_MEMORY: "GPU memory errors that were not kept to one process",
    FaultName.CONTAINED_MEMORY: "a GPU memory error that cost one process; a row remap is pending",
    FaultName.MEMORY_EXHAUSTED: "a GPU has no spare memory rows left",
    FaultName.NVLINK_ERROR: "an NVLink is down, slow or full of errors",
    FaultName.FABRIC_NOT_READY: "the NVLink fabric is not up",
    FaultName.NIC_MISSING: "a network adapter is missing",
    FaultName.NIC_DEGRADED: "a network adapter is slow, flaps or counts errors",
    FaultName.PCIE_DEGRADED: "a PCIe link is narrow, replays or reports errors",
    FaultName.THERMAL: "a GPU is slowed down by heat",
    FaultName.POWER: "a GPU is slowed down by its power supply",
    FaultName.HOST_MEMORY: "uncorrected errors of the host's memory",
    FaultName.HOST_UNREACHABLE: "the node does not answer",
    FaultName.HOST_DEGRADED: "a full or read-only disk, or a clock out of step",
    FaultName.CONFIG_MISMATCH: "driver or GPU settings are not as wanted",
    FaultName.INFOROM: "the InfoROM of a GPU is corrupt",
    FaultName.WRONG_RESULTS: "a GPU computes wrong results",
    FaultName.SLOW: "a GPU is slow, as a benchmark of its own confirms",
    FaultName.APPLICATION: "an error of the program that runs, not of the machine",
    FaultName.MONITOR_SILENT: "the agent or another sensor is silent",
    FaultName.UNKNOWN_CODE: "a code, value or reason that is in no table",
}
