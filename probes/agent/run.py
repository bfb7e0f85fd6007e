"""The loop of the agent, and its threads: one reads the log, one asks the machine, one publishes.

All knowledge is in `core` and changes only here, in the order in which things arrive. The queue
between reader and loop is bounded, so a storm waits in the kernel's own buffer, and a batch is
small, so renewals and patches go on beside it.
"""

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from probes.agent.conditions import digest
from probes.agent.core import Core
from probes.agent.counting import (
    count_applications,
    count_faults,
    count_harmless,
    count_log,
    missed,
)
from probes.agent.figures import Figures
from probes.agent.log_reader import Came, LogReader
from probes.agent.memory import load, save, sweep
from probes.agent.publish import Publisher
from probes.agent.senses import Sensed, Senses, SensesThread
from probes.log import say
from probes.machine import Machine
from probes.records import read_records

OFFERS = 20
"""Tries, of half a second each, to hand a finding to the loop."""
QUEUE_LIMIT = 8
"""Batches that wait between reader and loop."""
TICK = 2.0
"""Seconds between two looks at the boot id, at what steps left, and at our own threads: what comes
of the log, of a check or of the API server wakes us at once. Most of what a quiet agent spends is
waking up."""
SILENT_AFTER = 10.0
"""Seconds without a sign of life from the reader, or with numbers going backwards."""
SENSES_SILENT_AFTER = 480.0
"""Seconds for which a look at the machine may be owed: a reset keeps us from it for three minutes,
the next one is asked for two minutes later, and takes one."""
SETTLE_LIMIT = 20.0
"""Seconds after which what is still unknown is worded as Unknown."""
CHECK_PERIOD, NAME_PERIOD = 60.0, 600.0
"""Seconds between two rounds of checks while they are needed, and between two looks for names."""
ROUTINE_PERIOD = 120.0
"""Seconds between two rounds while all is well: a round is some 0.3 s of a core in children."""
CONFIRM_PERIOD = 5.0
"""Seconds until the next round when a fault has passed its check once: a repaired node should not
be called sick for a minute more. It runs only the checks that must pass again."""
CONFIRM_ROUNDS = 3
"""Such rounds in a row: a check that passed once may be unable to tell from then on."""
SAVE_PERIOD = 5.0
"""Seconds between two saves of what moves nothing (position, counts within a power of ten)."""
ACCEPT_USER_SPACE = "GPUMEND_TEST_ACCEPT_USER_KMSG"
"""Test switch: take records that user space wrote for evidence. Never on a real node."""


Item = Came | Sensed


@dataclass(slots=True)
class Agent:
    """One node's agent. `publisher` is None where there is no API server to tell."""

    machine: Machine
    node: str
    core: Core
    senses: Senses
    publisher: Publisher | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC).replace(microsecond=0)
    stop: threading.Event = field(default_factory=threading.Event)
    routine: float = ROUTINE_PERIOD
    figures: Figures = field(default_factory=Figures)
    _inbox: "queue.Queue[Item]" = field(init=False)
    _reader: LogReader = field(init=False)
    _opening: int = field(default=1, init=False)
    _problem_since: float | None = field(default=None, init=False)
    _behind_since: float | None = field(default=None, init=False)
    _unsettled: float | None = field(default=None, init=False)
    _saved_at: float = field(default=0.0, init=False)
    _saved: tuple[object, object] = field(default=(None, None), init=False)
    _records_at: int = field(default=-1, init=False)
    _asked: float | None = field(default=None, init=False)
    _named: float = field(default=0.0, init=False)
    _confirmed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._inbox = queue.Queue(QUEUE_LIMIT)
        self._reader = LogReader(self.machine, self._offer, self.stop)

    def run(self) -> None:
        """Until `stop` is set. Children that hang are not waited for.

        Names come first, for at most the limit of one child: a fault should not change its part.
        """
        self._name()
        asker = SensesThread(self.senses, self._sensed)
        asking = _thread(asker.run)
        threads = [asking]
        if self.publisher:
            threads.append(_thread(self.publisher.run))
        reading = _thread(self._reader.run)
        ticked = 0.0
        while not self.stop.is_set():
            with contextlib.suppress(queue.Empty):
                self._handle(self._inbox.get(timeout=TICK))
            if time.monotonic() - ticked >= TICK:
                ticked = time.monotonic()
                self._look_at_senses(asker, asking)
                self._tick(asker, reading)
                reading = self._revived(reading)
            self._conclude()
        asker.stop()
        if self.publisher:
            self.publisher.stop()
        self._save()
        for thread in threads:
            thread.join(timeout=2.0)

    def _name(self) -> None:
        self._named = time.monotonic()
        told: list[Sensed] = []
        with contextlib.suppress(OSError):
            self.senses.look(self.core.memory.gpus, False, told.append)
        for each in told:
            self._handle(each)

    def _offer(self, item: Item) -> bool:
        """Put it into the queue; False if there was no room for a while."""
        try:
            self._inbox.put(item, timeout=0.5)
        except queue.Full:
            return False
        return True

    def _sensed(self, sensed: Sensed) -> None:
        """A finding waits for room, but not for ever: the next round brings it again."""
        any(self._offer(sensed) for _ in range(OFFERS))

    def _handle(self, item: Item) -> None:
        if isinstance(item, Sensed):
            self.core.named(item.gpus)
            if item.heard is not None:
                self.core.heard(item.heard, self.clock())
            self.core.found(item.findings, self.clock())
            if item.round is not None:
                self.core.examined_by(item.round)
            if item.kept is not None:
                self.core.memory.kept = item.kept
        elif item.opening < self._opening:
            return
        elif item.problem:
            self._problem_since = self._problem_since or time.monotonic()
            say("kernel log cannot be read", problem=item.problem)
        elif item.raw:
            self._problem_since = None
            self._look_at_boot()
            if item.opening >= self._opening:
                self._take(item.raw)
                self._tell_applications()
        else:
            self._problem_since = None
            if not self.core.caught_up:
                self.core.memory.cursor.behind = 0
            self.core.reached_end()

    def _take(self, raw: tuple[bytes, ...]) -> None:
        before = missed(self.core.memory.cursor)
        self.core.take(list(raw), self.clock())
        count_log(self.figures, raw, before, missed(self.core.memory.cursor))

    def _tell_applications(self) -> None:
        """A job's own fault moves nothing: here its people find it, and whose it is."""
        known = self.core.applications
        for fault, count in known.news():
            name, uid = known.name(fault.pod), fault.pod or "unknown"
            whose = {"namespace": name.namespace, "pod": name.name, "uid": uid}
            say("fault of a job", part=fault.part, code=fault.code, **whose, count=count)

    def _tick(self, asker: SensesThread, reading: threading.Thread) -> None:
        self._look_at_boot()
        self._look_at_records()
        self._look_at_reader(reading)
        count_harmless(self.figures, self.core.moved_nothing)
        count_applications(self.figures, self.core.applications)
        self._ask(asker, time.monotonic())

    def _ask(self, asker: SensesThread, now: float) -> None:
        if self._checks_due(now):
            self._asked = self._named = now
            asker.ask(self.core.memory.gpus, True)
        elif only := self._to_confirm(now, asker):
            self._asked = now
            asker.ask(self.core.memory.gpus, True, only)
        elif now - self._named >= NAME_PERIOD:
            self._named = now
            asker.ask(self.core.memory.gpus, False)

    def _checks_due(self, now: float) -> bool:
        """At once for a new doubt; but a round that is under way, or was refused, gets its time."""
        if not self.core.caught_up:
            return False
        period = min(CHECK_PERIOD, self.routine) if self.core.examined else SILENT_AFTER
        if not self.core.needs_checks:
            period = self.routine
        return self._asked is None or now - self._asked >= period

    def _to_confirm(self, now: float, asker: SensesThread) -> frozenset[str]:
        """The checks to run again before the next round, not while a look is still under way."""
        waning = self.core.memory.faults.waning if self.core.examined else frozenset()
        if not waning:
            self._confirmed = 0
        rested = self._asked is not None and now - self._asked >= CONFIRM_PERIOD
        if not waning or not rested or asker.owed_since or self._confirmed >= CONFIRM_ROUNDS:
            return frozenset()
        self._confirmed += 1
        return waning

    def _look_at_records(self) -> None:
        """What steps left, when their folder changed; a change of this moment may not be all."""
        try:
            changed = (self.machine.state / "records").stat().st_mtime_ns
        except OSError:
            return
        recent = time.time_ns() - changed < 5 * TICK * 1e9
        if changed != self._records_at:
            self._asked = None if self.core.needs_checks else self._asked
        if changed != self._records_at or recent:
            self._records_at = changed
            boot_id = self.core.memory.cursor.boot_id
            self.core.repaired(read_records(self.machine.state, boot_id))

    def _look_at_boot(self) -> None:
        """On a real machine an agent does not outlive a boot; on a simulated one it may."""
        try:
            boot_id = self.machine.boot_id()
        except (OSError, ValueError) as problem:
            self.core.trouble.setdefault("boot:unreadable", self.clock())
            say("boot id cannot be read", problem=str(problem))
            return
        self.core.trouble.pop("boot:unreadable", None)
        if boot_id != self.core.memory.cursor.boot_id:
            say("new boot", boot=boot_id)
            self.core.booted(boot_id)
            self._opening = self._reader.reopen()
            self._name()

    def _look_at_reader(self, reading: threading.Thread) -> None:
        now = time.monotonic()
        backwards = self.core.caught_up and self.core.memory.cursor.behind > 0
        self._behind_since = (self._behind_since or now) if backwards else None
        self._trouble("reader:dead", not reading.is_alive())
        self._trouble("reader:silent", now - self._reader.beat > SILENT_AFTER)
        self._trouble("reader:unreadable", _older(self._problem_since, now, SILENT_AFTER))
        self._trouble("reader:behind", _older(self._behind_since, now, SILENT_AFTER))

    def _look_at_senses(self, asker: SensesThread, asking: threading.Thread) -> None:
        now = time.monotonic()
        self._trouble("senses:dead", not asking.is_alive())
        self._trouble("senses:silent", _older(asker.owed_since, now, SENSES_SILENT_AFTER))

    def _trouble(self, code: str, there: bool) -> None:
        if there and code not in self.core.trouble:
            say("our own senses fail", code=code)
            self.core.trouble[code] = self.clock()
        elif not there and code in self.core.trouble:
            del self.core.trouble[code]
            say("our own senses are back", code=code)

    def _revived(self, reading: threading.Thread) -> threading.Thread:
        """A reader that died is started again when its death has been said."""
        if reading.is_alive() or self._reader.beat > time.monotonic() - SILENT_AFTER:
            return reading
        self._opening = self._reader.reopen()
        self.core.caught_up = False
        return _thread(self._reader.run)

    def _conclude(self) -> None:
        """Save what changed, then publish it: never the other way round."""
        wanted = self.core.conditions(self._waited())
        matter = tuple(digest(each) for each in wanted.values())
        state = (matter, self.core.memory.token)
        rested = time.monotonic() - self._saved_at >= SAVE_PERIOD
        if matter != self._saved[0]:
            count_faults(self.figures, self.core.faults())
        if matter != self._saved[0] or (rested and state != self._saved):
            self._save()
            self._saved, self._saved_at = state, time.monotonic()
        if self.publisher and wanted:
            self.publisher.want(self.core.memory.cursor.boot_id, wanted)

    def _waited(self) -> bool:
        """Whether what is unsettled has been so for too long to keep silent about it."""
        now = time.monotonic()
        settled = self.core.settled(waited=False)
        self._unsettled = None if settled else self._unsettled or now
        return self._unsettled is not None and now - self._unsettled >= SETTLE_LIMIT

    def _save(self) -> None:
        try:
            save(self.core.memory, self.machine.state, self.node)
        except OSError as problem:
            if "state:unwritable" not in self.core.trouble:
                say("state cannot be written", problem=str(problem))
            self.core.trouble.setdefault("state:unwritable", self.clock())
        else:
            self.core.trouble.pop("state:unwritable", None)


def start(
    machine: Machine,
    node: str,
    key: bytes,
    publisher: Publisher | None,
    routine: float = ROUTINE_PERIOD,
    figures: Figures | None = None,
) -> Agent:
    """An agent with what its node remembers; raises OSError or ValueError without a boot id."""
    accept = os.environ.get(ACCEPT_USER_SPACE) == "1"
    if accept:
        say("TEST SWITCH: records of user space count as evidence", switch=ACCEPT_USER_SPACE)
    sweep(machine.state)
    memory = load(machine.state, machine.boot_id(), node)
    say(
        "agent starts",
        node=node,
        boot=memory.cursor.boot_id,
        sequence=memory.cursor.sequence,
        doubt=memory.doubt.value or "none",
    )
    core, figures = Core(machine, memory, accept), figures or Figures()
    senses = Senses(machine, key, figures, memory.kept)
    return Agent(machine, node, core, senses, publisher, routine=routine, figures=figures)


def _older(since: float | None, now: float, limit: float) -> bool:
    return since is not None and now - since > limit


def _thread(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
