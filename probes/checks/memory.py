"""Is the memory of every GPU sound? Asked of NVML, and where there is none of nvidia-smi.

Volatile counters start at 0 with every reset and driver load, so any count is since then; lifetime
counters never clear and are not looked at.
"""

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import Part
from probes.checks import nvidia_smi, nvml_memory
from probes.checks.gpus import each_gpu
from probes.checks.nvidia_smi import Cell, Row
from probes.checks.subject import Subject, fault, ok, unknown
from probes.counters import parse_count

_ECC = "ecc.errors.uncorrected.volatile.total"
_PENDING, _FAILURE = "remapped_rows.pending", "remapped_rows.failure"
_YES, _NO = frozenset({"yes", "1", "true"}), frozenset({"no", "0", "false"})


def check(subject: Subject) -> tuple[Finding, ...]:
    """Findings a GPU that answers, and one for what kept the answers from being whole."""
    if not subject.nvml().unheard:
        return each_gpu(
            Check.MEMORY, subject, lambda part, gpu: nvml_memory.judge(part, gpu, subject)
        )
    return _by_nvidia_smi(subject)


def _by_nvidia_smi(subject: Subject) -> tuple[Finding, ...]:
    ecc = nvidia_smi.query(Check.MEMORY, subject, ("pci.bus_id", _ECC))
    if not ecc.rows and ecc.findings:
        return ecc.findings
    fields = ("gpu_bus_id", _PENDING, _FAILURE)
    rows = nvidia_smi.query(Check.MEMORY, subject, fields, "--query-remapped-rows")
    found: list[Finding] = []
    for pci in sorted({*ecc.rows, *rows.rows}):
        part = subject.naming.gpu(pci)
        findings = [*_errors(part, ecc.rows.get(pci)), *_remapping(part, rows.rows.get(pci))]
        found += findings or [ok(Check.MEMORY, part)]
    return (*found, *ecc.findings, *rows.findings)


def _errors(part: Part, row: Row | None) -> list[Finding]:
    cell = row[_ECC] if row else Cell.BROKEN
    if isinstance(cell, Cell):
        return [_mute(part, cell, _ECC)]
    count = parse_count(cell)
    if count is None:
        return [unknown(Check.MEMORY, part, "memory:unreadable", f"{_ECC}={cell}")]
    if count == 0:
        return []
    said = f"{_ECC}={cell}"
    name, advice = FaultName.UNCONTAINED_MEMORY, Advice.RESET_GPU
    return [fault(Check.MEMORY, part, name, "ecc:uncorrected", advice, said)]


def _remapping(part: Part, row: Row | None) -> list[Finding]:
    """A failed remap wants another part; a pending one is applied by the next reset, at leisure."""
    found = []
    for field in (_FAILURE, _PENDING):
        cell = row[field] if row else Cell.BROKEN
        if isinstance(cell, Cell):
            found.append(_mute(part, cell, field))
        elif cell.lower() in _YES:
            found.append(_remap_fault(part, field))
        elif cell.lower() not in _NO:
            found.append(unknown(Check.MEMORY, part, "memory:unreadable", f"{field}={cell}"))
    return found


def _remap_fault(part: Part, field: str) -> Finding:
    if field == _FAILURE:
        name, advice, severity = FaultName.MEMORY_EXHAUSTED, Advice.REPLACE, Severity.FATAL
    else:
        name, advice, severity = FaultName.CONTAINED_MEMORY, Advice.HOLD, Severity.DEGRADED
    code = "remap:" + field.rpartition(".")[2]
    return fault(Check.MEMORY, part, name, code, advice, f"{field}=Yes", severity)


def _mute(part: Part, cell: Cell, field: str) -> Finding:
    say = nvidia_smi.absent_cell if cell is Cell.ABSENT else nvidia_smi.broken_cell
    return say(Check.MEMORY, part, field)
