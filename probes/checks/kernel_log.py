"""What does the kernel log still hold against this node, since its boot or its last repair?

Read anew from its start, with the rules by which the agent keeps faults. Where the start of the log
is overwritten, the agent's memory of this boot stands in for it; where neither reaches back to the
boot or to the repair of the part, absence of lines proves nothing.
"""

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.check import Check
from fleet.fault import Advice, Fault, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.agent.memory import Doubt, load
from probes.checks.subject import fault, ok, unknown
from probes.fault_set import FaultSet
from probes.kernel_log.read import Reader
from probes.kmsg import FIRST_SEQUENCE, Cursor, follow, open_source
from probes.log_faults import apply_records, take
from probes.machine import Machine
from probes.parts import Naming, covers
from probes.records import Kind, read_records

RECORD_LIMIT = 2_000_000
"""Records read at most; a kernel's buffer holds tens of thousands."""
_BATCH = 512
_SEVERE = (Advice.RESET_GPU, Advice.REBOOT, Advice.REPLACE)


@dataclass(frozen=True, slots=True)
class LogView:
    """What the log of one boot says: faults that stand, up to which record, and if it was whole.

    `since` is the first record that could still be read; -1 where the log is empty.
    """

    faults: tuple[Fault, ...]
    through: int
    since: int
    whole: bool


class Unreadable(Exception):
    """The log cannot be read (again)."""


def check(
    machine: Machine, naming: Naming, parts: Sequence[Part], now: datetime, accept: bool = False
) -> tuple[tuple[Finding, ...], int]:
    """Findings about `parts` (the host is everything), and the last record that was looked at."""
    try:
        boot_id = machine.boot_id()
        view = read_view(machine, naming, boot_id, now, accept)
    except (OSError, ValueError, Unreadable) as problem:
        return (unknown(Check.KERNEL_LOG, HOST, "kmsg:unreadable", str(problem)),), -1
    if view.through < 0:
        said = "the kernel log is empty: a kernel that booted has printed something"
        return (unknown(Check.KERNEL_LOG, HOST, "kmsg:empty", said),), -1
    mine = [each for each in view.faults if _concerns(each.part, parts)]
    found = tuple(map(finding, mine))
    if not view.whole and not _repaired_later(machine, boot_id, parts, view.since):
        said = f"records before {view.since} are overwritten, and nothing else remembers them"
        found = (*found, unknown(Check.KERNEL_LOG, HOST, "kmsg:incomplete", said))
    return found or tuple(ok(Check.KERNEL_LOG, part) for part in parts), view.through


def last_record(machine: Machine) -> int:
    """The sequence number of the newest record, -1 where the log cannot be read."""
    try:
        cursor = Cursor("")
        follow(_read_all(machine), cursor)
    except (OSError, Unreadable):
        return -1
    return cursor.sequence


def read_view(
    machine: Machine, naming: Naming, boot_id: str, now: datetime, accept: bool = False
) -> LogView:
    """Read the whole log; raises OSError or `Unreadable`."""
    raw = _read_all(machine)
    first = _first(raw)
    memory = load(machine.state, boot_id)
    reaches = memory.doubt is Doubt.NONE and memory.cursor.sequence >= first - 1
    if first > FIRST_SEQUENCE and reaches:
        cursor, faults, whole = memory.cursor, memory.faults, True
    else:
        cursor, faults, whole = Cursor(boot_id), FaultSet(), first <= FIRST_SEQUENCE
    lost = cursor.lost
    take(faults, naming, Reader(), follow(raw, cursor, accept), now)
    apply_records(faults, read_records(machine.state, boot_id))
    log_only = faults.of_log().faults(naming)
    return LogView(log_only, cursor.sequence, first, whole and cursor.lost == lost)


def _read_all(machine: Machine) -> list[bytes]:
    if stat.S_ISFIFO(machine.kmsg.stat().st_mode):
        raise Unreadable(f"{machine.kmsg} is a FIFO: it cannot be read again")
    source = open_source(machine.kmsg)
    try:
        raw: list[bytes] = []
        while len(raw) < RECORD_LIMIT and (more := source.take(_BATCH)):
            raw += more
        return raw
    finally:
        source.close()


def _first(raw: Sequence[bytes]) -> int:
    for each in raw:
        cursor = Cursor("")
        follow([each], cursor)
        if cursor.sequence >= 0:
            return cursor.sequence
    return -1


def _repaired_later(machine: Machine, boot_id: str, parts: Sequence[Part], since: int) -> bool:
    """Whether each part has a repair that nothing overwritten can be later than."""
    repairs = [each for each in read_records(machine.state, boot_id) if each.kind is Kind.RESET]
    return bool(parts) and all(
        any(
            covers(scope, part) and each.through >= since - 1
            for each in repairs
            for scope in each.parts
        )
        for part in parts
    )


def _concerns(part: Part, parts: Sequence[Part]) -> bool:
    return part == HOST or any(covers(scope, part) for scope in parts)


def finding(standing: Fault) -> Finding:
    """What stands by the log, as this check's answer."""
    severity = Severity.FATAL if standing.advice in _SEVERE else Severity.DEGRADED
    return fault(
        Check.KERNEL_LOG,
        standing.part,
        standing.name,
        standing.code,
        standing.advice,
        f"{standing.count} lines",
        severity,
        standing.pods,
    )
