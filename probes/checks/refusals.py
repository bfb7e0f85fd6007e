"""What it means when NVML refuses: by return code, for the whole driver and for one GPU.

3 and 13 (not supported, older driver) are no fault and no health: there is no such value here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fleet.fault import Advice, FaultName
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.subject import fault, hung, unknown
from probes.nvml import view
from probes.nvml.view import Mute, View

WHAT = "NVML"
MEANS: Mapping[int, tuple[str, FaultName, Advice]] = MappingProxyType(
    {
        view.DRIVER_NOT_LOADED: ("driver-not-loaded", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        view.VERSION_MISMATCH: ("version-mismatch", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        view.INTERRUPTS: ("interrupts", FaultName.DRIVER_HUNG, Advice.REBOOT),
        view.CORRUPTED_INFOROM: ("inforom", FaultName.INFOROM, Advice.HOLD),
        view.GPU_IS_LOST: ("gpu-lost", FaultName.GPU_LOST, Advice.REBOOT),
        view.RESET_REQUIRED: ("reset-required", FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
    }
)


def refused(check: str, part: Part, said: Mute, what: str) -> Finding:
    """The finding that a return code stands for; unknown where it stands for none."""
    meaning = MEANS.get(said.code)
    evidence = f"{what}: {said}"
    if meaning is None:
        return unknown(check, part, f"nvml:{said.code}", evidence)
    word, name, advice = meaning
    return fault(check, part, name, f"nvml:{word}", advice, evidence)


def unusable(check: str, seen: View) -> tuple[Finding, ...]:
    """Why NVML told nothing, or not all of it; empty where it told everything."""
    if seen.hung:
        return (hung(check, WHAT),)
    if seen.init is not None:
        return (refused(check, HOST, seen.init, "NVML does not begin"),)
    if isinstance(seen.count, Mute):
        return (refused(check, HOST, seen.count, "the number of GPUs"),)
    if not seen.whole:
        said = f"NVML told of {len(seen.gpus)} of {seen.count} GPUs and broke off"
        return (unknown(check, HOST, "nvml:incomplete", said),)
    return ()
