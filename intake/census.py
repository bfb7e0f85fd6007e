"""Tells the budget how the fleet stands: on change, but not too often, and never too seldom.

The budget lends nothing by a census that is old, so a quiet fleet is told again. Holds do not wait
for any of this.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from fleet.errors import Ambiguous, Refused, Transient
from fleet.ports import Budgets
from intake.surroundings import Surroundings
from intake.tally import Tally


class CensusTaker:
    """Pushes what `tally` counts; `barred` says which scopes nothing may be lent in, and why."""

    def __init__(
        self, given: Surroundings, tally: Tally, barred: Callable[[], Mapping[str, str]]
    ) -> None:
        self.told: datetime | None = None
        self.failures = 0
        self._budgets: Budgets | None = given.budgets
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._tally = tally
        self._barred = barred
        self._told_of = -1
        self._news = asyncio.Event()

    def look(self) -> None:
        """Something was counted: if the budget does not know it yet, it is told soon."""
        if self._tally.changes != self._told_of:
            self._news.set()

    def tell(self) -> None:
        """What is barred has changed: the budget is told soon."""
        self._news.set()

    @property
    def age(self) -> float | None:
        """Seconds since the budget was last told; None before."""
        return (self._clock.now() - self.told).total_seconds() if self.told else None

    async def run(self) -> None:
        """Tell until cancelled."""
        often = self._settings.census_at_most_every.total_seconds()
        seldom = self._settings.census_at_least_every.total_seconds()
        while True:
            told = await self._tell()
            await self._clock.sleep(often)
            with suppress(TimeoutError):
                async with asyncio.timeout(seldom - often if told else 0):
                    await self._news.wait()

    async def _tell(self) -> bool:
        if self._budgets is None:
            return True
        self._news.clear()
        changes, now = self._tally.changes, self._clock.now()
        try:
            await self._budgets.census(self._tally.census(now, self._barred()))
        except (Transient, Ambiguous, Refused) as problem:
            self.failures += 1
            self._journal.trouble("census", "cannot-tell-census", because=problem, then="repeated")
            return False
        self.told, self._told_of = now, changes
        self._journal.over("census", "telling-census-again")
        return True
