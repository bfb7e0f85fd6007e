"""What steps on this node leave behind for the agent: a reset that was done, a verify that passed,
what an active check found.

One small file a step, named by its operation, in the agent's state directory. `through` is the last
record of the kernel log that the step knows to be before it: only faults up to there may end. It
is -1 where the log could not be read: such a record ends nothing.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from fleet.instant import format_instant, parse_instant
from fleet.part import Part, parse_part
from probes.evidence import Claim, claim_fields, read_claim

RECORD_LIMIT = 64
"""Records kept; the oldest go first."""
_OPERATION = re.compile(r"[a-z0-9][a-z0-9.-]{0,200}")


BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading a file raises that holds something else than we wrote."""


class Kind(StrEnum):
    """`started` is written before a step acts: whoever finds it alone knows that it may have."""

    STARTED = "started"
    RESET = "reset"
    REBOOT = "reboot"
    VERIFY = "verify"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class Record:
    """What a step did, in which boot, to which parts (`host`: to all of them).

    `checks` are those that passed in a verify; `found` is, by check, what active checks found: the
    agent runs none of them, so only here does it learn of that, and of its end.
    """

    operation: str
    kind: Kind
    boot_id: str
    parts: tuple[Part, ...]
    through: int
    at: datetime
    checks: tuple[str, ...] = ()
    found: tuple[tuple[str, Claim], ...] = ()


def write_record(state: Path, record: Record) -> None:
    """Write it whole or not at all; raises OSError, or ValueError for a bad operation id."""
    if not _OPERATION.fullmatch(record.operation):
        raise ValueError(f"not an operation id: {record.operation!r}")
    folder = state / "records"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {
        "kind": record.kind.value,
        "boot_id": record.boot_id,
        "parts": list(record.parts),
        "through": record.through,
        "at": format_instant(record.at),
        "checks": list(record.checks),
        "found": [{"check": check, **claim_fields(claim)} for check, claim in record.found],
    }
    write_whole(folder / f"{record.operation}.json", json.dumps(fields))
    _prune(folder)


def read_record(state: Path, operation: str) -> Record | None:
    """What an operation left, None where there is nothing; raises ValueError for what is broken."""
    path = state / "records" / f"{operation}.json"
    try:
        fields: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
        return Record(
            operation=operation,
            kind=Kind(fields["kind"]),
            boot_id=str(fields["boot_id"]),
            parts=tuple(parse_part(each) for each in fields["parts"]),
            through=int(fields["through"]),
            at=parse_instant(fields["at"]),
            checks=tuple(str(each) for each in fields.get("checks", ())),
            found=tuple((str(each["check"]), read_claim(each)) for each in fields.get("found", ())),
        )
    except FileNotFoundError:
        return None
    except BROKEN as problem:
        raise ValueError(f"{path}: not the record of a step ({problem})") from problem


def read_records(state: Path, boot_id: str) -> tuple[Record, ...]:
    """The records of this boot, oldest first; broken ones prove nothing and are passed over."""
    try:
        names = [each.stem for each in (state / "records").glob("*.json")]
    except OSError:
        return ()
    found = []
    for name in names:
        try:
            record = read_record(state, name)
        except (OSError, ValueError):
            continue
        if record and record.boot_id == boot_id:
            found.append(record)
    return tuple(sorted(found, key=lambda each: (each.at, each.operation)))


def _prune(folder: Path) -> None:
    """Drop the oldest files beyond the limit."""
    files = sorted(folder.glob("*.json"), key=lambda each: each.stat().st_mtime_ns)
    for path in files[: max(0, len(files) - RECORD_LIMIT)]:
        path.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Replace a file so that, whenever we are killed, it is the old one or the new one."""
    part = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
