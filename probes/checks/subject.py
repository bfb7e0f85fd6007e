"""What a check looks at: a machine, the names of its parts, and its tools, one child each."""

import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding, Verdict
from fleet.pair import PairPlace
from fleet.part import HOST, Part
from probes import upsets
from probes.child import GRACE, Ended, Tool
from probes.counters import Counters, Rise
from probes.files import Glimpse, read_files
from probes.kept import Kept
from probes.machine import Machine
from probes.nvml.view import Mute, View, read
from probes.parts import GPU_FILES, Naming, gpus_of
from probes.processes import Process
from probes.settling import Upset
from probes.stuck import Thread

NVIDIA_SMI, NVML = "nvidia-smi", "nvml"
TOOL_LIMIT = 15.0
"""Seconds for one query: a first call after boot without persistence mode takes that long."""
EVIDENCE_LIMIT = 300
_SERIALS = re.compile(r"GPU-[0-9a-fA-F-]{8,}")


@dataclass(slots=True)
class Subject:
    """One machine under examination.

    `keep_open` are locks that live as long as its children, `counts` how many of which things the
    checks of this round found (by their names in `expectations`), `heard` which tools have ever
    answered here, `kept` what must outlive a restart. `scope` is what active checks may use; they
    have to be over by `until`, in monotonic seconds; None: they have their own limits only. `pair`
    is where another node is met, `word` what a trial in pairs has concluded, `said_by_trials` what
    an earlier one did.
    """

    machine: Machine
    naming: Naming
    tools: dict[str, Tool] = field(default_factory=dict)
    keep_open: tuple[int, ...] = ()
    counters: Counters = field(default_factory=Counters)
    stuck: dict[Thread, tuple[float, int]] = field(default_factory=dict)
    left_overs: dict[Process, tuple[float, int]] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)
    kept: Kept = field(default_factory=Kept)
    counts: dict[str, int] = field(default_factory=dict)
    at: float = 0.0
    scope: tuple[Part, ...] = (HOST,)
    until: float | None = None
    pair: PairPlace | None = None
    word: Finding | None = None
    said_by_trials: tuple[Finding, ...] = ()
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC), repr=False)
    _upsets: tuple[Upset, ...] | None = field(default=None, init=False)
    _view: View | None = field(default=None, init=False)
    _asking: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def begin(self, at: float | None = None) -> None:
        """A new round: what several checks share is asked anew. `at` is in monotonic seconds."""
        self._view = self._upsets = None
        self.counts.clear()
        self.at = time.monotonic() if at is None else at
        with suppress(OSError, ValueError):
            boot_id = self.machine.boot_id()
            self.kept = self.kept if self.kept.boot_id == boot_id else Kept(boot_id)

    def upsets(self) -> tuple[Upset, ...]:
        """What disturbed this machine so lately that something may still settle."""
        if self._upsets is None:
            self._upsets = upsets.read(self.machine, self.kept, self.at, self.clock())
        return (*self._upsets, *self.kept.upsets)

    def within(self, limit: float) -> float:
        """So many of `limit` seconds are left to an active check; 0 where it is too late."""
        return limit if self.until is None else max(0.0, min(limit, self.until - time.monotonic()))

    def rise(self, key: Hashable, value: int) -> Rise | None:
        """By how much a counter rose since the round before; None in the first."""
        return self.counters.rise(key, value, self.at)

    def rise_above(self, key: Hashable, value: int, per_minute: float) -> Rise | None:
        """The rise of a counter, if it is more than so much a minute."""
        rise = self.rise(key, value)
        return rise if rise is not None and rise.per_minute > per_minute else None

    def nvml(self) -> View:
        """What NVML says in this round: asked once, in a child, by the first check that comes."""
        with self._asking:
            if self._view is None:
                command, environment = self.machine.nvml_child()
                ended = self._tool(NVML).run(command, TOOL_LIMIT, self.keep_open, environment)
                self._view = read(ended.output, ended.hung)
                self._note_modes(self._view)
            return self._view

    def run(
        self, tool: str, *arguments: str, limit: float = TOOL_LIMIT, grace: float = GRACE
    ) -> Ended:
        """Run a tool of the machine; raises `Missing` where it has none."""
        command = self.machine.command(tool, *arguments)
        return self._tool(tool).run(command, limit, self.keep_open, grace=grace)

    def use(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        limit: float,
        grace: float = GRACE,
    ) -> tuple[Ended, bool]:
        """Use the GPUs, in a child by that name; how it ended, and whether it had to be left."""
        tool = self._tool(name)
        ended = tool.run(command, limit, self.keep_open, environment, grace)
        return ended, tool.outstanding is not None

    def read(self, *patterns: str, size: int) -> Glimpse:
        """Read files under the machine's root that may hang in a driver."""
        reader = self._tool(f"reader of {patterns[0]}")
        places = [f"{self.machine.root}/{each}" for each in patterns]
        return read_files(reader, places, size, self.keep_open)

    def name_gpus(self, key: bytes = b"") -> Glimpse:
        """Learn the GPUs that the driver lists, on top of those that it listed before."""
        seen = self.read(GPU_FILES, size=4_096)
        gpus = {**self.naming.gpus, **gpus_of(seen.contents.values(), key)}
        self.naming = Naming(gpus, self.machine.root)
        return seen

    def _note_modes(self, view: View) -> None:
        """Whether GPUs are cut into instances; one that does not tell keeps the mode it had."""
        for gpu in view.gpus:
            mode = gpu.numbers("mig_mode", 2)
            if gpu.pci and not isinstance(mode, Mute):
                self.kept.saw_mig(self.naming.gpu(gpu.pci), mode[0], self.at)

    def _tool(self, name: str) -> Tool:
        return self.tools.setdefault(name, Tool(name))


def ok(check: str, part: Part, evidence: str = "") -> Finding:
    """Looked, and found well."""
    return Finding(check, part, Verdict.OK, evidence=tidy(evidence))


def unknown(check: str, part: Part, code: str, evidence: str = "") -> Finding:
    """Could not tell."""
    return Finding(check, part, Verdict.UNKNOWN, code=code, evidence=tidy(evidence))


def fault(
    check: str,
    part: Part,
    name: FaultName,
    code: str,
    advice: Advice,
    evidence: str = "",
    severity: Severity = Severity.FATAL,
    pods: tuple[str, ...] = (),
) -> Finding:
    """Looked, and found a fault; `pods` are those whose work it hit."""
    return Finding(check, part, Verdict.FAULT, name, code, advice, severity, tidy(evidence), pods)


def hung(check: str, what: str) -> Finding:
    """The child itself is the finding: what talks to the driver did not come back."""
    evidence = f"{what} did not end within its limit and was left behind"
    return fault(check, HOST, FaultName.DRIVER_HUNG, "child:hung", Advice.REBOOT, evidence)


def tidy(text: str | Sequence[str]) -> str:
    """Bounded, on one line, without the serial numbers of GPUs."""
    joined = text if isinstance(text, str) else "; ".join(text)
    return _SERIALS.sub("GPU-…", " ".join(joined.split()))[:EVIDENCE_LIMIT]
