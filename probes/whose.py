"""Whose work is hit: from the process ids of kernel lines and of the driver to the pods' UIDs.

The process that a line names is often dead when the line is read, so GPU processes are remembered
from the rounds before, for a while. What cannot be told stays empty; nothing is guessed.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf
from pathlib import Path

from fleet.fault import FaultName
from fleet.finding import Finding
from fleet.part import Part
from fleet.pod import hit
from probes.parts import owner_of
from probes.processes import Heard, Process, first_namespace, read_process

REMEMBERED = timedelta(minutes=15)
"""How long a process that was seen on a GPU is believed to have been the one of its id: some seven
rounds. Ids come again only when a node has started some hundred thousand others."""
PROCESSES_LIMIT = 512
"""Processes remembered; those seen longest ago go first."""


HITS_ALL = frozenset(
    {
        FaultName.GPU_LOST,
        FaultName.FIRMWARE_HALTED,
        FaultName.UNCONTAINED_MEMORY,
        FaultName.NVLINK_ERROR,
    }
)
"""Faults that hit whoever runs on the GPU. Of a contained error only its line says whom it hit."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A process of a pod, when it was last seen to run, and the GPUs that it held."""

    pid: int
    started: float
    pod: str
    at: datetime
    parts: frozenset[Part] = frozenset()


@dataclass(slots=True)
class Whose:
    """The GPU processes of one boot that belong to pods, as far as they were seen, by their ids."""

    seen: dict[int, Seen] = field(default_factory=dict)
    _looked: datetime | None = field(default=None, repr=False)
    _found: dict[int, Process | None] = field(default_factory=dict, repr=False)
    _on: dict[Part, tuple[Seen, ...]] = field(default_factory=dict, repr=False)

    def remember(self, heard: Heard, now: datetime) -> None:
        """The driver lists these processes just now; those that left a GPU are on it no more."""
        left = (replace(each, parts=each.parts - heard.told) for each in self.seen.values())
        kept = {each.pid: each for each in left if _fresh(each, now)}
        for process, part in heard.running:
            before = kept.pop(process.pid, None)
            if process.owner is None or not process.owner.pod:
                continue
            same = before is not None and before.started == process.started
            parts = (before.parts if before and same else frozenset()) | {part}
            kept[process.pid] = Seen(process.pid, process.started, process.owner.pod, now, parts)
        self.seen = dict(list(kept.items())[-PROCESSES_LIMIT:])
        self._looked = None

    def pods_of(
        self, root: Path | None, pid: int | None, at: float, now: datetime
    ) -> tuple[str, ...]:
        """The pod of a process as it was `at` seconds after the boot; empty where nobody can tell.

        One that started later is another process with its id.
        """
        if not pid:
            return ()
        before = self.seen.get(pid)
        if before and before.started <= at and _fresh(before, now):
            return (before.pod,)
        process = self._look(root, pid, now) if root else None
        if process is None or process.started > at or process.owner is None:
            return ()
        return (process.owner.pod,) * bool(process.owner.pod)

    def pods_on(self, part: Part, now: datetime, at: float = inf) -> tuple[str, ...]:
        """The pods whose processes were on a GPU when the driver last told of it, of those that
        began before `at` seconds after the boot."""
        self._begin(now)
        if part not in self._on:
            mine = (each for each in self.seen.values() if part in each.parts)
            self._on[part] = tuple(each for each in mine if _fresh(each, now))
        return hit((), (each.pod for each in self._on[part] if each.started <= at))

    def _begin(self, now: datetime) -> None:
        """A storm names the same processes and parts very often: each is looked at once a second,
        and once a round."""
        if now != self._looked or max(len(self._found), len(self._on)) >= PROCESSES_LIMIT:
            self._looked, self._found, self._on = now, {}, {}

    def _look(self, root: Path, pid: int, now: datetime) -> Process | None:
        self._begin(now)
        if pid not in self._found:
            known = first_namespace(root)
            self._found[pid] = read_process(root, pid) if known else None
        return self._found[pid]


def _fresh(seen: Seen, now: datetime) -> bool:
    return abs(now - seen.at) <= REMEMBERED


def hits(finding: Finding, whose: Whose, now: datetime) -> Finding:
    """A finding of a check, with the pods that it hits where that follows from what it is."""
    if finding.pods or finding.fault not in HITS_ALL:
        return finding
    return replace(finding, pods=whose.pods_on(owner_of(finding.part), now))
