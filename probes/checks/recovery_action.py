"""What does the driver itself want done? NVML's recovery action, or what nvidia-smi prints of it.

NVML gives a value. nvidia-smi prints a label, and labels change between drivers: a number wins
where there is one, and a label that nobody knows is a hand-off, not a pass.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from fleet.check import Check
from fleet.finding import Finding, Verdict
from fleet.part import Part
from probes.checks import nvidia_smi
from probes.checks.gpus import Aspect, Seen, each_gpu, mute
from probes.checks.nvidia_smi import Cell
from probes.checks.subject import Subject, fault, ok
from probes.evidence import Claim, driver_verdict
from probes.nvml.view import GpuView, Mute

_ADDRESS, _ACTION = "pci.bus_id", "gpu_recovery_action"
_NUMBER = re.compile(r"\b(0x[0-9a-fA-F]{1,8}|\d{1,9})\b")

LABELS: Mapping[str, int] = MappingProxyType(
    {
        "none": 0,
        "reset": 1,
        "gpu reset": 1,
        "gpu reset required": 1,
        "pf flr": 1,
        "reboot": 2,
        "node reboot": 2,
        "node reboot required": 2,
        "os reboot": 2,
        "drain p2p": 3,
        "drain and reset": 4,
        "recover imex domain": 5,
        "bus reset": 6,
        "system reboot": 7,
    }
)
NOBODY_KNOWS = 0xFFFF_FFFF


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a GPU that answers, and one for what kept the answers from being whole."""
    if not subject.nvml().unheard:
        return each_gpu(Check.RECOVERY_ACTION, subject, _judge)
    table = nvidia_smi.query(Check.RECOVERY_ACTION, subject, (_ADDRESS, _ACTION))
    found = [_finding(subject.naming.gpu(pci), row[_ACTION]) for pci, row in table.rows.items()]
    return (*found, *table.findings)


def _judge(part: Part, gpu: GpuView) -> Iterator[Seen]:
    said = gpu.number("recovery_action")
    if isinstance(said, Mute):
        yield mute(Check.RECOVERY_ACTION, part, said, "recovery action")
    else:
        found = _wanted(part, said, f"recovery action is {said}")
        yield Aspect.WELL if found.verdict is Verdict.OK else found


def value_of(label: str) -> int:
    """The value that a cell stands for; one in no table where nobody knows it."""
    number = _NUMBER.search(label)
    if number:
        return int(number.group(), 0) if "x" in number.group() else int(number.group())
    return LABELS.get(" ".join(label.lower().split()), NOBODY_KNOWS)


def _finding(part: Part, cell: str | Cell) -> Finding:
    if cell is Cell.ABSENT:
        return nvidia_smi.absent_cell(Check.RECOVERY_ACTION, part, _ACTION)
    if isinstance(cell, Cell):
        return nvidia_smi.broken_cell(Check.RECOVERY_ACTION, part, _ACTION)
    return _wanted(part, value_of(cell), f"recovery action is {cell}")


def _wanted(part: Part, value: int, said: str) -> Finding:
    wanted = driver_verdict(part, value, _code(value))
    if isinstance(wanted, Claim):
        return fault(
            Check.RECOVERY_ACTION,
            part,
            wanted.fault,
            wanted.code,
            wanted.advice,
            said,
            wanted.severity,
        )
    return ok(Check.RECOVERY_ACTION, part)


def _code(value: int) -> str:
    return "recovery-action:" + ("unlisted" if value == NOBODY_KNOWS else str(value))
