"""Keep all devices at work together, and tell what their products came to and how fast they were.

Together, since a node at full load is what a job is: power and heat are shared. While the devices
work, NVML is asked (`Watcher`), since clocks and links at rest say nothing.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from probes.child import Tool
from probes.compute.backend import Arithmetic, Device, OutOfMemory
from probes.compute.products import Factory, Shape

BATCH_SECONDS = 0.5
"""Aimed at for one batch; between two of them time is looked at."""
MOST_PRODUCTS = 4_095
FIRST_PRODUCTS = 3
SINGLE_EVERY = 8
"""Rounds: single precision is slower and cooler, so it is looked at and not dwelt upon."""
LEAST_ROUNDS = SINGLE_EVERY + 1
"""So that each arithmetic is tried twice, however short the time."""
SUMS_KEPT = 8
"""Different sums told of one device; more only say the same again."""
WATCH_LIMIT = 15.0
"""Seconds for NVML to answer."""
WATCHES = 3
"""Looks in one load: a clock or a link at one moment says little."""
WATCH_ROOM = 128 * 1024
"""Characters of all looks together: of what a child prints only so much is kept (`probes.child`),
and memory, told last, must find room. Eight GPUs take about 36,000 a look.
"""


@dataclass(slots=True)
class Tally:
    """What one device made in one arithmetic: batches by their sum, and the rate after the first.

    `operations` and `seconds` leave out the first batch, in which libraries choose their ways.
    """

    sums: Counter[int] = field(default_factory=Counter)
    operations: int = 0
    seconds: float = 0.0

    def add(self, sum_: int, operations: int, seconds: float) -> None:
        """One batch; sums beyond the limit are counted under the last one kept."""
        if self.sums:
            self.operations += operations
            self.seconds += seconds
        known = sum_ in self.sums or len(self.sums) < SUMS_KEPT
        self.sums[sum_ if known else next(reversed(self.sums))] += 1

    @property
    def rate(self) -> float:
        """Operations a second; 0 where only one batch was made."""
        return self.operations / self.seconds if self.seconds else 0.0


class Watcher:
    """Asks NVML some times, in a process of its own each, while somebody else works."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        """An empty command asks nothing."""
        self._command, self._environment = command, environment
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self.outputs: list[str] = []

    def start(self) -> None:
        """Ask, from now on."""
        if self._command and not self._thread.ident:
            self._thread.start()

    @property
    def done(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self._command or (self._thread.ident is not None and not self._thread.is_alive())

    def _ask(self) -> None:
        tool = Tool("nvml")
        for _ in range(WATCHES):
            ended = tool.run(self._command, WATCH_LIMIT, environment=self._environment)
            if ended.hung or sum(map(len, [*self.outputs, ended.output])) > WATCH_ROOM:
                return
            self.outputs.append(ended.output)


Tallies = dict[Arithmetic, Tally]
Fail = Callable[[Device, Exception], None]


@dataclass(slots=True)
class _Worker:
    device: Device
    factories: dict[Arithmetic, Factory]
    tallies: Tallies


def keep_busy(
    devices: Iterable[Device],
    shape: Shape,
    watcher: Watcher,
    time_left: Callable[[], float],
    fail: Fail,
) -> dict[str, Tallies]:
    """Tallies by address, of devices that came through; `fail` is told of each that did not.

    Works until time is out; longer, by one more watch at most, while NVML has not answered.
    """
    workers = list(filter(None, (_begin(each, shape, fail) for each in devices)))
    products, round_ = FIRST_PRODUCTS, 0
    while workers and _goes_on(round_, watcher, time_left()):
        single = round_ % SINGLE_EVERY == SINGLE_EVERY - 1
        arithmetic = Arithmetic.SINGLE if single else Arithmetic.HALF
        made = 1 if single else products
        workers, longest = _round(workers, arithmetic, made, shape, fail)
        watcher.start()
        if not single and longest:
            products = _fitting(made, longest)
        round_ += 1
    return {each.device.pci: each.tallies for each in workers}


def _goes_on(round_: int, watcher: Watcher, left: float) -> bool:
    if round_ < LEAST_ROUNDS or left > 0:
        return True
    return not watcher.done and left > -WATCH_LIMIT


def _fitting(made: int, seconds: float) -> int:
    """An odd number of products that takes about as long as a batch should."""
    wanted = int(made * BATCH_SECONDS / seconds)
    return min(max(wanted, 1), MOST_PRODUCTS) | 1


def _begin(device: Device, shape: Shape, fail: Fail) -> _Worker | None:
    try:
        factories = {each: Factory(device, shape, each) for each in Arithmetic}
    except (RuntimeError, OutOfMemory) as problem:
        fail(device, problem)
        return None
    return _Worker(device, factories, {each: Tally() for each in Arithmetic})


def _round(
    workers: list[_Worker], arithmetic: Arithmetic, made: int, shape: Shape, fail: Fail
) -> tuple[list[_Worker], float]:
    """A batch of each, begun on all before any is waited for; those left, and the longest time."""
    begun, done, longest = [], [], 0.0
    for worker in workers:
        try:
            begun.append((worker, worker.factories[arithmetic].batch(made)))
        except RuntimeError as problem:
            fail(worker.device, problem)
    for worker, marks in begun:
        try:
            seconds = worker.device.seconds(*marks)
            sum_ = worker.factories[arithmetic].sum()
        except (RuntimeError, OutOfMemory) as problem:
            fail(worker.device, problem)
            continue
        worker.tallies[arithmetic].add(sum_, made * shape.operations, seconds)
        longest = max(longest, seconds)
        done.append(worker)
    return done, longest
