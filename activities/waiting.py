"""Waiting for the cluster to say something: list, judge, watch, judge again, until a moment.

A watch that breaks or expires is taken up again by listing, so nothing is missed and nothing needs
to be remembered. What is waited for is the caller's.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from activities.clock import Clock
from fleet.errors import Expired, TooManyRequests, Transient
from fleet.ports import Json, Kubernetes

PAGES_LIMIT = 100
"""Pages of one list. A node runs hundreds of Pods at most; a hundred pages hold 50,000."""

RELIST_PAUSE = 1.0
"""Seconds before a watch that ended or broke is taken up again, so that no failure spins."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of a collection at one version."""

    objects: tuple[Json, ...]
    resource_version: str


async def list_all(
    kubernetes: Kubernetes, path: str, query: Mapping[str, str] | None = None
) -> Listing:
    """Every page of a collection; raises what the port raises, Expired among it."""
    objects: list[Json] = []
    token = ""
    for _ in range(PAGES_LIMIT):
        page = await kubernetes.page(path, query=query, token=token)
        objects += page.items
        token = page.next_page
        if not token:
            return Listing(tuple(objects), page.resource_version)
    raise Transient(f"{path} has more than {PAGES_LIMIT} pages")


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
    """The first answer of `judge` that is not None, or None when `until` has come.

    `judge` is asked about the whole collection, first as it is (or as `start` has it) and then
    after every change. An API server that is away is waited for; only refusals are raised.
    """
    while (left := (until - now()).total_seconds()) > 0:
        try:
            async with asyncio.timeout(left):
                answer = await _follow(kubernetes, path, query, judge, start)
        except TimeoutError:
            return None
        except (Transient, Expired, TooManyRequests):
            answer = None
        if answer is not None:
            return answer
        start = None
        left = (until - now()).total_seconds()
        await asyncio.sleep(max(0.0, min(RELIST_PAUSE, left)))
    return None


async def _follow(
    kubernetes: Kubernetes,
    path: str,
    query: Mapping[str, str],
    judge: Callable[[Sequence[Json]], T | None],
    start: Listing | None,
) -> T | None:
    listing = start or await list_all(kubernetes, path, query)
    answer = judge(listing.objects)
    if answer is not None:
        return answer
    standing = {each["metadata"]["uid"]: each for each in listing.objects}
    version = listing.resource_version
    async with kubernetes.watch(path, resource_version=version, query=query) as events:
        async for event in events:
            if event.type == "BOOKMARK":
                continue
            uid = event.object["metadata"]["uid"]
            if event.type == "DELETED":
                standing.pop(uid, None)
            else:
                standing[uid] = event.object
            answer = judge(tuple(standing.values()))
            if answer is not None:
                return answer
    return None
