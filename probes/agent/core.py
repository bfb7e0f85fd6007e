"""What one agent knows and concludes, without threads, devices or a network: state in, state out.

The loop that feeds it is `run`; what it concludes is worded by `conditions`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.fault import Fault
from fleet.finding import Finding
from fleet.part import HOST
from probes.agent.conditions import Conditions, conditions, monitor_silent
from probes.agent.memory import Doubt, Memory, begin_boot
from probes.agent.untold import Untold, proves
from probes.applications import Applications
from probes.kernel_log.read import Reader
from probes.kmsg import follow
from probes.log_faults import Witness, apply_records, take
from probes.machine import Machine
from probes.parts import Gpu, Naming
from probes.pod_names import PodNames
from probes.processes import Heard
from probes.records import Kind, Record
from probes.whose import hits

EMPTY_LOG = "LogEmpty"
"""A kernel that booted has printed something: an empty log is one that we cannot read."""
COUNTERS_LIMIT = 1_000


@dataclass(slots=True)
class Core:
    """The knowledge of one boot, and how well our own senses are.

    `caught_up`: the log was read to its end since it was opened. `trouble`: what is wrong with our
    own reading or writing, by code, since when. `applications`: what jobs did to themselves.
    """

    machine: Machine
    memory: Memory
    accept_user_space: bool = False
    caught_up: bool = False
    examined: bool = False
    trouble: dict[str, datetime] = field(default_factory=dict)
    moved_nothing: Counter[tuple[str, str]] = field(default_factory=Counter)
    applications: Applications = field(default_factory=Applications)
    untold: Untold = field(default_factory=Untold)
    pod_names: PodNames = field(init=False)
    _reader: Reader = field(default_factory=Reader)

    def __post_init__(self) -> None:
        self.pod_names = PodNames(self.machine.root)

    @property
    def naming(self) -> Naming:
        """The names of parts, as far as the driver has told them in this boot."""
        return Naming(self.memory.gpus, self.machine.root)

    def take(self, raw: list[bytes], now: datetime) -> None:
        """Records of the log, in order."""
        cursor, memory = self.memory.cursor, self.memory
        first, lost = cursor.first, cursor.lost
        followed = follow(raw, cursor, self.accept_user_space)
        witness = Witness(memory.whose, self.applications, memory.failures, self.pod_names)
        counted = take(memory.faults, self.naming, self._reader, followed, now, witness)
        if len(self.moved_nothing) < COUNTERS_LIMIT:
            self.moved_nothing.update(counted)
        if first != cursor.first:
            memory.doubted_at = cursor.first
            if not cursor.whole:
                self._doubt(Doubt.LOG_INCOMPLETE)
        if lost != cursor.lost:
            memory.doubted_at = cursor.sequence
            self._doubt(Doubt.LOG_LOST)

    def reached_end(self) -> None:
        """The log was read to its end: a whole log makes up for a memory that was lost."""
        self.caught_up = True
        whole = self.memory.cursor.whole and not self.memory.cursor.lost
        if whole and self.memory.doubt in (Doubt.LOST, Doubt.BROKEN, Doubt.FOREIGN):
            self.memory.doubt = Doubt.NONE

    def booted(self, boot_id: str) -> None:
        """The machine was booted: what its log claimed is over, and its log begins anew."""
        self.memory = begin_boot(self.memory, boot_id)
        self._reader = Reader()
        self.untold = Untold()
        self.caught_up = self.examined = False

    def repaired(self, records: Sequence[Record]) -> None:
        """What steps on this node left in this boot."""
        apply_records(self.memory.faults, records)
        for each in records:
            if each.kind in (Kind.RESET, Kind.VERIFY):
                for part in each.parts:
                    self.memory.failures.forget(part, each.through)
        proofs = [each for each in records if each.kind is Kind.VERIFY and HOST in each.parts]
        if any(each.through >= self.memory.doubted_at for each in proofs):
            self.memory.doubt = Doubt.NONE

    def named(self, gpus: dict[str, Gpu]) -> None:
        """The driver lists these GPUs."""
        if gpus != self.memory.gpus:
            self.memory.gpus = gpus
            self.memory.faults.rename(self.naming)

    def heard(self, heard: Heard, now: datetime) -> None:
        """The driver listed the processes on its GPUs."""
        self.memory.whose.remember(heard, now)

    def found(self, findings: Sequence[Finding], now: datetime) -> None:
        """What one check found, as soon as it is known."""
        whose = self.memory.whose
        self.memory.faults.judge([hits(each, whose, now) for each in findings], now)

    def examined_by(self, findings: Sequence[Finding]) -> None:
        """A round of all checks is over, which together would have shown any standing fault."""
        self.examined = True
        self.untold.round(findings)
        if findings and all(proves(each) for each in findings):
            self.memory.doubt = Doubt.NONE

    @property
    def needs_checks(self) -> bool:
        """Whether the log is not enough: something may have been missed, or a level stands."""
        return self.caught_up and (bool(self.memory.doubt) or self.memory.faults.levels)

    def settled(self, waited: bool) -> bool:
        """Whether absence of faults may be worded yet, as True or as Unknown."""
        return waited or (self.caught_up and (not self.memory.doubt or self.examined))

    def faults(self) -> tuple[Fault, ...]:
        """What stands, worst first, our own silence among it."""
        silent = [monitor_silent(code, since) for code, since in sorted(self.trouble.items())]
        return (*self.memory.faults.faults(self.naming), *silent)

    def conditions(self, waited: bool = True) -> Conditions:
        """The conditions that can be worded now; before it has settled, only those with a fault."""
        unknown, untold = self._unknown(), self.untold.conditions()
        said = conditions(self.memory.cursor.boot_id, self.faults(), unknown, untold)
        if self.settled(waited):
            return said
        return {kind: each for kind, each in said.items() if each.status == "False"}

    def _unknown(self) -> str:
        if any(code.startswith("reader:") for code in self.trouble):
            return "LogUnreadable"
        if any(code.startswith("senses:") for code in self.trouble):
            return "ChecksSilent"
        if not self.caught_up:
            return "LogNotReadYet"
        if self.memory.cursor.sequence < 0:
            return EMPTY_LOG
        return self.memory.doubt.value

    def _doubt(self, doubt: Doubt) -> None:
        if not self.memory.doubt:
            self.memory.doubt, self.examined = doubt, False
