"""Ask `nvidia-smi` for a table, and read whatever it says: cells, exit codes, silence.

Field names are those of `nvidia-smi --help-query-gpu`. An exit of 0 may still hold `ERR!` cells; an
exit code other than 0 may still come with rows of the GPUs that answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from fleet.fault import Advice, FaultName
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.subject import NVIDIA_SMI, Subject, fault, hung, unknown
from probes.machine import Missing
from probes.parts import short_address

ROW_LIMIT = 128
_ABSENT = re.compile(r"\[?(n/?a|not supported|not available|insufficient permissions)\]?", re.I)
_BROKEN = re.compile(r"\[?(err!|unknown error|gpu is lost|.*requires? reset.*)\]?", re.I)
_ADDRESS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")


class Cell(Enum):
    """A cell that holds no value: not supported here, or the driver could not tell."""

    ABSENT = "absent"
    BROKEN = "broken"


Row = Mapping[str, str | Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows by short PCI address, and what kept the table from being whole."""

    rows: Mapping[str, Row]
    findings: tuple[Finding, ...] = ()


EXITS: Mapping[int, tuple[str, FaultName | None, Advice]] = MappingProxyType(
    {
        2: ("unsupported", None, Advice.NONE),
        8: ("power-cable", FaultName.POWER, Advice.HAND_OFF),
        9: ("driver-not-loaded", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        10: ("interrupts", FaultName.DRIVER_HUNG, Advice.REBOOT),
        12: ("library-not-found", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        13: ("function-not-found", None, Advice.NONE),
        14: ("inforom", FaultName.INFOROM, Advice.HOLD),
        15: ("gpu-lost", FaultName.GPU_LOST, Advice.REBOOT),
        16: ("reset-required", FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
        18: ("version-mismatch", FaultName.CONFIG_MISMATCH, Advice.HOLD),
    }
)
"""Exit codes of nvidia-smi (NVML's return codes) that say something of their own."""


def query(
    check: str, subject: Subject, fields: Sequence[str], option: str = "--query-gpu"
) -> Table:
    """One table; `fields` start with the one that holds the PCI address. Never raises."""
    arguments = (f"{option}={','.join(fields)}", "--format=csv,noheader,nounits")
    try:
        ended = subject.run(NVIDIA_SMI, *arguments)
    except Missing as problem:
        return Table({}, (unknown(check, HOST, "nvidia-smi:missing", str(problem)),))
    if ended.hung:
        return Table({}, (hung(check, NVIDIA_SMI),))
    rows = _rows(ended.output, fields)
    if ended.status == 0:
        problems = _unread(check, ended.output, rows)
    else:
        problems = (_failure(check, subject, ended.status, f"{ended.errors} {ended.output}"),)
    return Table(rows, problems)


def broken_cell(check: str, part: Part, field: str) -> Finding:
    """The driver answered for this GPU with an error where a value should be."""
    return unknown(check, part, "nvidia-smi:error-cell", f"{field} cannot be read")


def absent_cell(check: str, part: Part, field: str) -> Finding:
    """This GPU or driver has no such value."""
    return unknown(check, part, "nvidia-smi:not-supported", f"{field} is not supported here")


def _rows(output: str, fields: Sequence[str]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for line in output.splitlines()[:ROW_LIMIT]:
        cells = [each.strip() for each in line.split(",")]
        if len(cells) != len(fields):
            continue
        try:
            rows[short_address(cells[0])] = dict(zip(fields, map(_cell, cells), strict=True))
        except ValueError:
            continue
    return rows


def _cell(text: str) -> str | Cell:
    if _ABSENT.fullmatch(text) or not text:
        return Cell.ABSENT
    return Cell.BROKEN if _BROKEN.fullmatch(text) else text


def _unread(check: str, output: str, rows: Mapping[str, Row]) -> tuple[Finding, ...]:
    """Lines that are no rows: a GPU may be behind each of them."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return (unknown(check, HOST, "nvidia-smi:empty", "nvidia-smi printed nothing"),)
    if len(lines) == len(rows):
        return ()
    return (unknown(check, HOST, "nvidia-smi:unreadable", f"{len(lines)} lines, {len(rows)} read"),)


def _failure(check: str, subject: Subject, status: int | None, said: str) -> Finding:
    if status in (126, 127):
        return unknown(check, HOST, "nvidia-smi:missing", said)
    word, name, advice = EXITS.get(status or 0, (f"exit-{status}", None, Advice.NONE))
    code = f"nvidia-smi:{word}"
    if name is None:
        return unknown(check, HOST, code, said)
    return fault(check, _accused(subject, said), name, code, advice, said)


def _accused(subject: Subject, said: str) -> Part:
    """The GPU that an error message names, else the host."""
    found = _ADDRESS.search(said)
    return subject.naming.gpu(found.group()) if found else HOST
