"""What the agent remembers over a restart: boot, log position and faults, in one file, atomically.

Position and faults change together, so that a record is neither counted twice nor lost, whenever we
are killed. Memory that is lost, broken or another node's is unknown, never healthy: `doubt` says so
until something positive is known.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fleet.instant import format_instant, parse_instant
from fleet.part import parse_part
from fleet.pod import is_pod_uid
from probes.evidence import claim_fields, read_claim
from probes.fault_set import FaultSet, Standing
from probes.job_failures import JobFailure, JobFailures
from probes.kept import Fields, read_kept
from probes.kmsg import Cursor
from probes.parts import Gpu
from probes.records import BROKEN, write_whole
from probes.whose import Seen, Whose

VERSION = 1
"""Of the file. What came to it later (`processes`, `pods`, `failures`, `kept`) is read as none
where it is missing: an upgrade of the agent is no reason to doubt what it knew."""
FILE = "agent.json"


class Doubt(StrEnum):
    """Why absence of faults proves nothing; the reason of a condition that is Unknown."""

    NONE = ""
    LOST = "StateLost"
    BROKEN = "StateCorrupt"
    FOREIGN = "StateForeign"
    LOG_INCOMPLETE = "LogIncomplete"
    LOG_LOST = "LogLost"


@dataclass(slots=True)
class Memory:
    """All that the agent knows of this boot.

    `gpus` are those the driver has listed in it; `doubted_at` is the record after what a doubt says
    may have been missed; `whose` are the processes that were on its GPUs lately, `failures` the
    jobs that failed there, `kept` what checks must know of the rounds before.
    """

    cursor: Cursor
    faults: FaultSet = field(default_factory=FaultSet)
    gpus: dict[str, Gpu] = field(default_factory=dict)
    doubt: Doubt = Doubt.NONE
    doubted_at: int = -1
    whose: Whose = field(default_factory=Whose)
    failures: JobFailures = field(default_factory=JobFailures)
    kept: Fields = field(default_factory=dict)

    @property
    def token(self) -> tuple[object, ...]:
        """Changes when there is something new to save."""
        cursor = self.cursor
        counts = sum(old.count + old.passes for old in self.faults.standing.values())
        seen = max((each.at for each in self.whose.seen.values()), default=None)
        return (
            cursor.boot_id,
            cursor.sequence,
            cursor.lost,
            self.doubt,
            len(self.gpus),
            counts,
            seen,
            self.kept,
        )


def load(state: Path, boot_id: str, node: str | None = None) -> Memory:
    """What is remembered of this boot of this node; a doubt where it cannot be told.

    Without `node` (a step that is not told its name) another node's memory is taken as this one's
    if it is of this boot: boot ids are unique.
    """
    try:
        fields = json.loads((state / FILE).read_text("utf-8"))
        if fields["version"] != VERSION or fields["node"] != (node or fields["node"]):
            return Memory(Cursor(boot_id), doubt=Doubt.FOREIGN)
        memory = _memory(fields)
    except FileNotFoundError:
        return Memory(Cursor(boot_id), doubt=Doubt.LOST)
    except (OSError, *BROKEN):
        return Memory(Cursor(boot_id), doubt=Doubt.BROKEN)
    return memory if memory.cursor.boot_id == boot_id else begin_boot(memory, boot_id)


def begin_boot(memory: Memory, boot_id: str) -> Memory:
    """What is left of a memory when the machine was booted: faults that only a check can end."""
    memory.faults.new_boot()
    return Memory(Cursor(boot_id), memory.faults)


def sweep(state: Path) -> None:
    """Remove what a killed writer left half-written."""
    with contextlib.suppress(OSError):
        for left in state.glob(f"{FILE}.*.tmp"):
            left.unlink()


def save(memory: Memory, state: Path, node: str) -> None:
    """Write it whole or not at all; raises OSError."""
    state.mkdir(parents=True, exist_ok=True)
    cursor = memory.cursor
    fields = {
        "version": VERSION,
        "node": node,
        "boot_id": cursor.boot_id,
        "sequence": cursor.sequence,
        "lost": cursor.lost,
        "garbled": cursor.garbled,
        "foreign": cursor.foreign,
        "first": cursor.first,
        "doubt": memory.doubt.value,
        "doubted_at": memory.doubted_at,
        "gpus": {pci: [gpu.index, gpu.id] for pci, gpu in memory.gpus.items()},
        "standing": [_fields(each) for each in memory.faults.standing.values()],
        "processes": [_seen_fields(each) for each in memory.whose.seen.values()],
        "failures": [list(astuple(each)) for each in memory.failures.seen.values()],
        "kept": memory.kept,
    }
    write_whole(state / FILE, json.dumps(fields, separators=(",", ":")))


def _memory(fields: Mapping[str, Any]) -> Memory:
    cursor = Cursor(
        boot_id=_text(fields["boot_id"]),
        sequence=int(fields["sequence"]),
        lost=int(fields["lost"]),
        garbled=int(fields["garbled"]),
        foreign=int(fields["foreign"]),
        first=int(fields["first"]),
    )
    gpus = {str(pci): Gpu(int(gpu[0]), str(gpu[1])) for pci, gpu in fields["gpus"].items()}
    faults = FaultSet()
    for each in fields["standing"]:
        faults.restore(_standing(each))
    doubt, doubted_at = Doubt(fields["doubt"]), int(fields["doubted_at"])
    seen = [_seen(each) for each in fields.get("processes", [])]
    whose = Whose({each.pid: each for each in seen})
    failed = [_failure(each) for each in fields.get("failures", [])]
    failures = JobFailures({(each.gpu, each.namespace): each for each in failed})
    kept = fields.get("kept", {})
    read_kept(kept)
    return Memory(cursor, faults, gpus, doubt, doubted_at, whose, failures, kept)


def _failure(fields: list[Any]) -> JobFailure:
    gpu, namespace, pod, first, last, sequence = fields
    times = float(first), float(last)
    return JobFailure(parse_part(gpu), _text(namespace), _text(pod), *times, int(sequence))


def _seen_fields(seen: Seen) -> list[Any]:
    return [seen.pid, seen.started, seen.pod, format_instant(seen.at), sorted(seen.parts)]


def _seen(fields: list[Any]) -> Seen:
    pid, started, pod, at, parts = fields
    on = frozenset(parse_part(each) for each in parts)
    return Seen(int(pid), float(started), _text(pod), parse_instant(at), on)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not text: {value!r}")
    return value


def _fields(old: Standing) -> dict[str, Any]:
    return {
        **claim_fields(old.claim),
        "count": old.count,
        "since": format_instant(old.since),
        "sequence": old.sequence,
        "source": old.source,
        "passes": old.passes,
        "pods": old.pods,
    }


def _standing(fields: Mapping[str, Any]) -> Standing:
    return Standing(
        claim=read_claim(fields),
        count=int(fields["count"]),
        since=parse_instant(fields["since"]),
        sequence=int(fields["sequence"]),
        source=str(fields["source"]),
        passes=int(fields["passes"]),
        pods=tuple(filter(is_pod_uid, fields.get("pods", ()))),
    )
