"""Waiting for the cluster to say something: list, judge, watch, judge again, until a moment.

A watch that the server ends goes on from its last version; one that breaks or expires is taken up
again by listing. So nothing is missed. What is waited for is the caller's.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from activities.clock import Clock
from fleet.errors import Expired, TooManyRequests, Transient
from fleet.ports import Json, Kubernetes, Page, WatchEvent

PAGES_LIMIT = 100
"""Pages of one list. A node runs hundreds of Pods at most; a hundred pages hold 50,000."""

PAUSE = 1.0
"""Seconds before a watch that ended or broke is taken up again, so that no failure spins."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of a collection at one version."""

    objects: tuple[Json, ...]
    resource_version: str

    @classmethod
    def of_one(cls, thing: Mapping[str, Any]) -> "Listing":
        """What a query for one object by its name would list, as it was just read or made."""
        return cls((dict(thing),), thing["metadata"]["resourceVersion"])


async def list_all(
    kubernetes: Kubernetes, path: str, query: Mapping[str, str] | None = None
) -> Listing:
    """Every page of a collection; raises what the port raises, Expired among it."""
    objects: list[Json] = []
    version = ""
    async for page in pages(kubernetes, path, query):
        objects += page.items
        version = page.resource_version
    return Listing(tuple(objects), version)


async def pages(
    kubernetes: Kubernetes, path: str, query: Mapping[str, str] | None = None
) -> AsyncIterator[Page]:
    """A collection page by page, for who keeps little of each; raises as `list_all`."""
    token = ""
    for _ in range(PAGES_LIMIT):
        page = await kubernetes.page(path, query=query, token=token)
        yield page
        token = page.next_page
        if not token:
            return
    raise Transient(f"{path} has more than {PAGES_LIMIT} pages")


class Collection:
    """A collection that is followed, over one wait or several."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        path: str,
        query: Mapping[str, str],
        start: Listing | None = None,
    ) -> None:
        """`start` is how it was just read."""
        self._kubernetes = kubernetes
        self._path = path
        self._query = query
        self._seen = _Seen(start) if start else None

    @property
    def objects(self) -> tuple[Json, ...] | None:
        """What stands in it; None where a watch broke, and only a list would tell."""
        return self._seen.objects if self._seen else None

    async def wait(
        self, judge: Callable[[Sequence[Json]], T | None], *, until: datetime, now: Clock
    ) -> T | None:
        """The first answer of `judge` that is not None, or None when `until` has come.

        `judge` is asked about the whole collection, first as it is and then after every change. An
        API server that is away is waited for; only refusals are raised.
        """
        while (left := (until - now()).total_seconds()) > 0:
            try:
                async with asyncio.timeout(left):
                    answer = await self._follow(judge)
            except TimeoutError:
                return None
            except (Transient, Expired, TooManyRequests):
                answer, self._seen = None, None
            if answer is not None:
                return answer
            left = (until - now()).total_seconds()
            await asyncio.sleep(max(0.0, min(PAUSE, left)))
        return None

    async def _follow(self, judge: Callable[[Sequence[Json]], T | None]) -> T | None:
        """Until `judge` answers; None where the server ended the watch, which may then go on."""
        path, query = self._path, self._query
        if self._seen is None:
            self._seen = _Seen(await list_all(self._kubernetes, path, query))
        seen = self._seen
        answer = judge(seen.objects)
        if answer is not None:
            return answer
        watch = self._kubernetes.watch(path, resource_version=seen.version, query=query)
        async with watch as events:
            async for event in events:
                answer = judge(seen.objects) if seen.take(event) else None
                if answer is not None:
                    return answer
        return None


class _Seen:
    """What stands, by UID, and the version up to which that is so."""

    def __init__(self, listing: Listing) -> None:
        self._standing = {each["metadata"]["uid"]: each for each in listing.objects}
        self.version = listing.resource_version

    @property
    def objects(self) -> tuple[Json, ...]:
        return tuple(self._standing.values())

    def take(self, event: WatchEvent) -> bool:
        """Take in what a watch says; whether that changed what stands."""
        metadata = event.object["metadata"]
        self.version = metadata["resourceVersion"]
        if event.type == "DELETED":
            self._standing.pop(metadata["uid"], None)
        elif event.type != "BOOKMARK":
            self._standing[metadata["uid"]] = event.object
        return event.type != "BOOKMARK"


async def wait_until(
    kubernetes: Kubernetes,
    path: str,
    query: Mapping[str, str],
    judge: Callable[[Sequence[Json]], T | None],
    *,
    until: datetime,
    now: Clock,
    start: Listing | None = None,
) -> T | None:
    """One wait on a collection that nobody goes on following: see `Collection.wait`."""
    return await Collection(kubernetes, path, query, start).wait(judge, until=until, now=now)
