"""Ask `nvidia-smi` for a table, and read whatever it says: cells, exit codes, silence.

Field names are those of `nvidia-smi --help-query-gpu`. An exit of 0 may still hold `ERR!` cells; an
exit code other than 0 may still come with rows of the GPUs that answer, or name one that it cannot
open.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from fleet.fault import Advice, FaultName
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.subject import NVIDIA_SMI, Subject, fault, hung, unknown
from probes.child import NO_PROGRAM
from probes.machine import Missing
from probes.nvml.view import GPU_IS_LOST, RESET_REQUIRED
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
        3: ("not-available", None, Advice.NONE),
        4: ("not-permitted", None, Advice.NONE),
        6: ("no-devices", None, Advice.NONE),
        8: ("power-cable", FaultName.POWER, Advice.HAND_OFF),
        9: ("driver-not-loaded", None, Advice.NONE),
        10: ("interrupts", FaultName.DRIVER_HUNG, Advice.REBOOT),
        12: ("library-not-found", FaultName.CONFIG_MISMATCH, Advice.HOLD),
        13: ("function-not-found", None, Advice.NONE),
        14: ("inforom", FaultName.INFOROM, Advice.HOLD),
        15: ("gpu-lost", FaultName.GPU_LOST, Advice.REBOOT),
        16: ("reset-required", FaultName.FIRMWARE_HALTED, Advice.RESET_GPU),
        18: ("version-mismatch", FaultName.CONFIG_MISMATCH, Advice.HOLD),
    }
)
"""Exit codes of nvidia-smi (NVML's return codes) that say something of their own. That there is no
driver is for the check `driver` to judge. One that is in
no table, 255 (internal error) among them, tells nothing."""
_NO_HANDLE = re.compile(r"unable to determine the device handle for gpu(.*)", re.I)
_NO_DEVICES = re.compile(r"no devices were found", re.I)


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
    said = f"{ended.output}\n{ended.errors}"
    problems = tuple(_no_handle(check, subject, ended.status, said))
    if ended.status != 0 and not problems:
        problems = (_failure(check, subject, ended.status, _words(said, fields)),)
    return Table(rows, problems or _unread(check, ended.output, rows))


def broken_cell(check: str, part: Part, field: str) -> Finding:
    """The driver answered for this GPU with an error where a value should be."""
    return unknown(check, part, "nvidia-smi:error-cell", f"{field} cannot be read")


def absent_cell(check: str, part: Part, field: str) -> Finding:
    """This GPU or driver has no such value."""
    return unknown(check, part, "nvidia-smi:not-supported", f"{field} is not supported here")


def _rows(output: str, fields: Sequence[str]) -> dict[str, Row]:
    """Whole lines only: of a cell that was cut off nobody knows what is missing."""
    rows: dict[str, Row] = {}
    for line in output.split("\n")[:-1][:ROW_LIMIT]:
        cells = [each.strip() for each in line.split(",")]
        if len(cells) != len(fields):
            continue
        try:
            rows[short_address(cells[0])] = dict(zip(fields, map(_cell, cells), strict=True))
        except ValueError:
            continue
    return rows


def _words(said: str, fields: Sequence[str]) -> str:
    """All but the rows: what a status is about is not a GPU that answered."""
    lines = [line for line in said.splitlines() if not _rows(f"{line}\n", fields)]
    return " ".join(line for line in lines if line.strip())


def _cell(text: str) -> str | Cell:
    if _ABSENT.fullmatch(text) or not text:
        return Cell.ABSENT
    return Cell.BROKEN if _BROKEN.fullmatch(text) else text


def _unread(check: str, output: str, rows: Mapping[str, Row]) -> tuple[Finding, ...]:
    """Lines that are no rows: a GPU may be behind each of them."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return (unknown(check, HOST, "nvidia-smi:empty", "nvidia-smi printed nothing"),)
    if _NO_DEVICES.search(output):
        return (unknown(check, HOST, "nvidia-smi:no-devices", output),)
    if len(lines) == len(rows):
        return ()
    return (unknown(check, HOST, "nvidia-smi:unreadable", f"{len(lines)} lines, {len(rows)} read"),)


def _no_handle(check: str, subject: Subject, status: int | None, said: str) -> Iterator[Finding]:
    """The GPUs that nvidia-smi says it cannot open, each with its reason, whatever its status."""
    for found in _NO_HANDLE.finditer(said):
        reason = found[1].lower()
        if "lost" in reason:
            yield _failure(check, subject, GPU_IS_LOST, found[0])
        elif "reset" in reason:
            yield _failure(check, subject, RESET_REQUIRED, found[0])
        elif EXITS.get(status or 0, ("", None))[1] is not None:
            yield _failure(check, subject, status, found[0])
        else:
            part = _accused(subject, found[0])
            yield unknown(check, part, "nvidia-smi:no-handle", found[0])


def _failure(check: str, subject: Subject, status: int | None, said: str) -> Finding:
    if status in NO_PROGRAM:
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
