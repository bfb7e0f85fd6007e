"""What disturbed a machine lately: its boot, its driver's load, recorded resets. Reading only.

How long anybody settles from it is in `settling`; what only shows between two rounds in `kept`.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from probes import driver_start
from probes.kept import Kept
from probes.machine import Machine
from probes.records import Kind, Record, read_records
from probes.settling import Upset, Why


def read(machine: Machine, kept: Kept, at: float, now: datetime) -> tuple[Upset, ...]:
    """Everything but what `kept` has; `at` is now in the seconds in which the upsets are told."""
    mark = driver_start.mark(machine.root)
    kept.saw_driver(mark, at)
    kept.loader = driver_start.loader(machine.root, kept.loader) if mark else None
    up = uptime(machine.root)
    return (*_starts(kept, at, up), *resets(_records(machine), at, now))


def resets(records: Iterable[Record], at: float, now: datetime) -> Iterator[Upset]:
    """The resets among what steps left."""
    for each in records:
        if each.kind is Kind.RESET:
            yield from (
                Upset(Why.RESET, at - (now - each.at).total_seconds(), part) for part in each.parts
            )


def uptime(root: Path) -> float | None:
    """Seconds since the boot; None where nobody can tell: then it was long ago."""
    try:
        return float((root / "proc/uptime").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _starts(kept: Kept, at: float, up: float | None) -> Iterator[Upset]:
    if up is None:
        return
    yield Upset(Why.BOOT, at - up)
    if kept.loader is not None:
        yield Upset(Why.DRIVER, at - up + kept.loader.started)


def _records(machine: Machine) -> tuple[Record, ...]:
    try:
        return read_records(machine.state, machine.boot_id())
    except (OSError, ValueError):
        return ()
