"""List and watch of our own, over raw JSON: a small record an object, and its changes in order.

Survives closed and silent watches, expired versions and continue tokens; a deletion that fell into
a gap shows as absence in the next list. What a change means is not decided here.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fleet.errors import Ambiguous, Expired, Refused, TooManyRequests, Transient
from fleet.ports import Json, Page, WatchEvent
from intake.surroundings import Surroundings

Record = TypeVar("Record")
OnChange = Callable[[str, Record | None, Record | None], None]
"""Name, the record before (None: it is new), the record after (None: it is gone)."""

_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(slots=True)
class Counts:
    """What happened so far, for metrics."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    expired: int = 0
    idle: int = 0
    unreadable: int = 0


class ListWatch(Generic[Record]):
    """Follows one collection for ever. `records` is what is there now, by name.

    `on_change` must not block and must not raise; it is called after `records` was changed.
    `synced` is set when the first list is complete.
    """

    def __init__(
        self,
        given: Surroundings,
        path: str,
        read: Callable[[Json], Record],
        on_change: "OnChange[Record]",
    ) -> None:
        self.records: dict[str, Record] = {}
        self.synced = asyncio.Event()
        self.counts = Counts()
        self._kubernetes = given.kubernetes
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._backoff = given.backoff()
        self._path = path
        self._read = read
        self._on_change = on_change
        self._version = ""
        self._page_size = given.settings.page_size

    async def run(self) -> None:
        """List, watch, resume, list again, until cancelled."""
        while True:
            hint = None
            try:
                if not self._version:
                    await self._list()
                if await self._watch():
                    continue
            except Expired as problem:
                self._forget_version(problem)
            except TimeoutError:
                self.counts.idle += 1
                self._journal.say("watch-idle", path=self._path)
            except (Transient, TooManyRequests) as problem:
                hint = problem.retry_after
                self._failed(problem)
            except (Ambiguous, Refused) as problem:
                self._failed(problem)
            await self._clock.sleep(self._backoff.next(hint))

    def _forget_version(self, problem: Expired) -> None:
        self.counts.expired += 1
        self._version = ""
        self._journal.say("list-again", path=self._path, because=problem.reason)

    def _failed(self, problem: Exception) -> None:
        self.counts.failures += 1
        self._journal.trouble(self._path, "cannot-watch", path=self._path, because=problem)

    def _readable(self) -> None:
        self._journal.over(self._path, "watching-again", path=self._path)

    async def _list(self) -> None:
        """Read every page, then drop what is not there any more."""
        self.counts.lists += 1
        present: set[str] = set()
        token = ""
        while True:
            page = await self._page(token)
            present.update(name for each in page.items if (name := self._put(each)))
            token = page.next_page
            if not token:
                break
        for name in [each for each in self.records if each not in present]:
            self._drop(name)
        self._version = page.resource_version
        self._page_size = self._settings.page_size
        self.synced.set()
        self._readable()

    async def _page(self, token: str) -> Page:
        try:
            return await self._kubernetes.page(self._path, limit=self._page_size, token=token)
        except Expired:
            # The list took longer than the server keeps old versions: fewer, larger pages.
            larger = self._page_size * self._settings.page_growth
            self._page_size = min(larger, self._settings.page_limit)
            raise

    async def _watch(self) -> bool:
        """Watch until the server ends it; False if it ended so soon that a wait is due."""
        self.counts.watches += 1
        began = self._clock.monotonic()
        async with self._kubernetes.watch(self._path, resource_version=self._version) as events:
            self._readable()
            await self._follow(events)
        lasted = self._clock.monotonic() - began >= self._settings.backoff_first.total_seconds()
        if lasted:
            self._backoff.reset()
        return lasted

    async def _follow(self, events: AsyncIterator[WatchEvent]) -> None:
        loop = asyncio.get_running_loop()
        idle = self._settings.watch_idle.total_seconds()
        async with asyncio.timeout(idle) as limit:
            async for event in events:
                limit.reschedule(loop.time() + idle)
                self._backoff.reset()
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        self.counts.events += 1
        metadata = event.object["metadata"]
        if event.type in ("ADDED", "MODIFIED"):
            self._put(event.object)
        elif event.type == "DELETED":
            self._drop(metadata["name"])
        self._version = metadata["resourceVersion"]

    def _put(self, manifest: Json) -> str:
        """Keep the record; one that cannot be read is said, and the last readable one stays."""
        name: str = manifest["metadata"]["name"]
        try:
            after = self._read(manifest)
        except _UNREADABLE as problem:
            self.counts.unreadable += 1
            self._journal.trouble(
                f"{self._path}/{name}", "cannot-read", path=self._path, name=name, because=problem
            )
            return name
        before = self.records.get(name)
        if before != after:
            self.records[name] = after
            self._on_change(name, before, after)
        return name

    def _drop(self, name: str) -> None:
        before = self.records.pop(name, None)
        if before is not None:
            self._on_change(name, before, None)
