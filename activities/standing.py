"""How the engine stands, as Temporal has it: open incidents and the budget's ledger, now and then.

Read by every worker that shows metrics and equal in all of them: take one, never their sum. What
cannot be read for a while is left out rather than shown as it was.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from activities.step_figures import metric
from fleet.errors import Ambiguous, Refused, Transient
from fleet.figure import (
    BREAKER,
    CENSUS_AGE,
    FIGURES_AGE,
    LEASE_LIMIT,
    LEASES,
    OPEN,
    STOPPED,
    UNANSWERED,
)
from policies.ledger_view import LedgerView

READ_EVERY = 30.0
"""Seconds. Two calls to Temporal each time."""
STALE_AFTER = 180.0
"""Then the gauges go: an old number would look like a quiet fleet."""

_log = logging.getLogger(__name__)


class Standing(Collector):
    """Reads `incidents` (open ones by step) and `ledger` until cancelled, and shows them."""

    def __init__(
        self,
        incidents: Callable[[], Awaitable[Counter[str]]],
        ledger: Callable[[], Awaitable[LedgerView | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_incidents = incidents
        self._read_ledger = ledger
        self._clock = clock
        self._incidents: Counter[str] = Counter()
        self._ledger: LedgerView | None = None
        self._read_at: float | None = None

    async def run(self) -> None:
        """Read now and then."""
        while True:
            await self.read()
            await asyncio.sleep(READ_EVERY)

    async def read(self) -> None:
        """Read once; what cannot be read is said in the log."""
        try:
            incidents, ledger = await self._read_incidents(), await self._read_ledger()
        except (Transient, Ambiguous, Refused) as problem:
            _log.warning("what=figures-not-read why=%r", str(problem))
            return
        self._incidents, self._ledger, self._read_at = incidents, ledger, self._clock()

    def collect(self) -> Iterator[Metric]:
        """As it was last read, if that is not too long ago."""
        if self._read_at is None:
            return
        age = self._clock() - self._read_at
        yield _one(FIGURES_AGE.name, metric(FIGURES_AGE), age)
        if age > STALE_AFTER:
            return
        yield self._open()
        if self._ledger is not None:
            yield from of_ledger(self._ledger)

    def _open(self) -> Metric:
        found = metric(OPEN)
        for step, count in sorted(self._incidents.items()):
            found.add_sample(OPEN.name, {"step": step}, count)
        return found


def of_ledger(ledger: LedgerView) -> Iterator[Metric]:
    """The budget's gauges out of its answer. Pure."""
    leases, limits, barred = metric(LEASES), metric(LEASE_LIMIT), metric(BREAKER)
    for row in ledger.scopes:
        for state, count in (
            ("leased", row.leased),
            ("waiting", row.waiting),
            ("handed-off", row.handed_off),
            ("down", row.down),
        ):
            leases.add_sample(LEASES.name, {"scope": row.scope, "state": state}, count)
        if row.maximum is not None:
            limits.add_sample(LEASE_LIMIT.name, {"scope": row.scope}, row.maximum)
        barred.add_sample(BREAKER.name, {"scope": row.scope}, 1 if row.barred else 0)
    yield from (leases, limits, barred)
    yield _one(UNANSWERED.name, metric(UNANSWERED), ledger.unanswered)
    yield _one(STOPPED.name, metric(STOPPED), 1 if ledger.stopped else 0)
    if ledger.census_age is not None:
        yield _one(CENSUS_AGE.name, metric(CENSUS_AGE), ledger.census_age.total_seconds())


def _one(name: str, found: Metric, value: float) -> Metric:
    found.add_sample(name, {}, value)
    return found
