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
MEANS: Mapping[int, tuple[str, FaultName | None, Advice]] = MappingProxyType(
    {
        view.DRIVER_NOT_LOADED: ("driver-not-loaded", None, Advice.NONE),
        view.VERSION_MISMATCH: ("version-mismatch", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        view.INTERRUPTS: ("interrupts", FaultName.DRIVER_HUNG, Advice.REBOOT),
        view.CORRUPTED_INFOROM: ("inforom", FaultName.INFOROM, Advice.HOLD),
        view.GPU_IS_LOST: ("gpu-lost", FaultName.GPU_LOST, Advice.REBOOT),
        view.RESET_REQUIRED: ("reset-required", FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
    }
)
"""That there is no driver is unknown here: the check `driver` can tell whether one is awaited."""


def refused(check: str, part: Part, said: Mute, what: str) -> Finding:
    """The finding that a return code stands for; unknown where it stands for none."""
    word, name, advice = MEANS.get(said.code, (str(said.code), None, Advice.NONE))
    evidence = f"{what}: {said}"
    if name is None:
        return unknown(check, part, f"nvml:{word}", evidence)
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
