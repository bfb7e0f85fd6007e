"""What the child asks of each GPU: the driver's fields by number, and the calls that have none.

A name here is a name in the view. Field numbers are NVML's own, each used once and never changed;
`pynvml` comes as an argument, since only the child may import it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

FIELDS: Mapping[str, int] = MappingProxyType(
    {
        "ecc_corrected": 3,
        "ecc_uncorrected": 4,
        "retired_sbe": 29,
        "retired_dbe": 30,
        "retired_pending": 31,
        "memory_temperature": 82,
        "nvlink_count": 91,
        "pcie_replays": 94,
        "remapped_uncorrectable": 143,
        "remap_pending": 144,
        "remap_failure": 145,
        "c2c_count": 170,
        "pcie_non_fatal": 179,
        "pcie_fatal": 180,
        "slowdown_limit": 194,
        "memory_limit": 195,
        "recovery_action": 230,
        "sw_thermal_ns": 269,
        "hw_thermal_ns": 270,
        "power_brake_ns": 271,
    }
)
"""Of the whole device. Counters of ECC and slowdowns are volatile: since the driver was loaded."""

LINK_FIELDS: Mapping[str, int] = MappingProxyType(
    {
        "replay": 161,
        "recovery": 162,
        "crc": 163,
        "speed": 164,
        "state": 165,
        "malformed": 206,
        "overrun": 207,
        "receive_errors": 208,
        "integrity": 211,
        "recovery_failed": 214,
    }
)
"""Of one NVLink. 161-163 exist before Blackwell, 206 and above from there on."""

C2C_FIELDS: Mapping[str, int] = MappingProxyType({"status": 171})
"""Of one C2C link of a Grace board."""

LINK_LIMIT = 36
"""NVLinks asked of a GPU at most; no board has more."""


def _row_banks(nvml: Any, handle: Any) -> int:
    """Memory banks that have no spare row left."""
    return int(nvml.nvmlDeviceGetRowRemapperHistogram(handle).none)


def _sram_threshold(nvml: Any, handle: Any) -> int:
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(handle, nvml.byref(status))
    return int(status.bThresholdExceeded)


def _fabric(nvml: Any, handle: Any) -> list[int]:
    """State, status, health mask and, from newer drivers, the summary (0: none)."""
    for kind in (nvml.c_nvmlGpuFabricInfo_v3_t, nvml.c_nvmlGpuFabricInfo_v2_t):
        info = kind()
        try:
            nvml.nvmlDeviceGetGpuFabricInfoV(handle, nvml.byref(info))
        except nvml.NVMLError as problem:
            if problem.value == nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
                continue
            raise
        summary = getattr(info, "healthSummary", 0)
        return [int(info.state), int(info.status), int(info.healthMask), int(summary)]
    raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)


def _processes(nvml: Any, handle: Any) -> list[int]:
    return _ids(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))


def _graphics(nvml: Any, handle: Any) -> list[int]:
    return _ids(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle))


def _mps(nvml: Any, handle: Any) -> list[int]:
    """Those that compute through the MPS server, which alone holds the GPU."""
    return _ids(nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(handle))


def _ids(running: Any) -> list[int]:
    return sorted(int(each.pid) for each in running)[:PROCESS_LIMIT]


PROCESS_LIMIT = 256
PROCESS_LISTS = ("processes", "graphics", "mps")
"""Names of the lists of processes: who computes, who draws, who computes through MPS."""

Call = Callable[[Any, Any], Any]
CALLS: Mapping[str, Call] = MappingProxyType(
    {
        "persistence": lambda nvml, gpu: nvml.nvmlDeviceGetPersistenceMode(gpu),
        "ecc_mode": lambda nvml, gpu: list(nvml.nvmlDeviceGetEccMode(gpu)),
        "mig_mode": lambda nvml, gpu: list(nvml.nvmlDeviceGetMigMode(gpu)),
        "width": lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu),
        "width_limit": lambda nvml, gpu: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu),
        "generation": lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu),
        "generation_limit": lambda nvml, gpu: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu),
        "gpu_generation_limit": lambda nvml, gpu: nvml.nvmlDeviceGetGpuMaxPcieLinkGeneration(gpu),
        "performance_state": lambda nvml, gpu: nvml.nvmlDeviceGetPerformanceState(gpu),
        "margin": lambda nvml, gpu: nvml.nvmlDeviceGetMarginTemperature(gpu),
        "power": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu),
        "power_limit": lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu),
        "sm_clock": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
        "sm_clock_limit": lambda nvml, gpu: nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM),
        "clock_events": lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),
        "utilization": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
        "memory_used": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
        "memory_total": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
        "banks_exhausted": _row_banks,
        "sram_threshold": _sram_threshold,
        "repair_pending": lambda nvml, gpu: list(nvml.nvmlDeviceGetRepairStatus(gpu)),
        "unrepairable": lambda nvml, gpu: nvml.nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu),
        "fabric": _fabric,
        "processes": _processes,
        "graphics": _graphics,
        "mps": _mps,
    }
)
"""What has no field number. Power in milliwatts, margin in degrees to the slowdown. Of the two
limits of the link's generation one is that of GPU and slot together, the other the GPU's own."""
