"""Watches: the changes of one kind from a version on, for one caller.

A watch holds no queue: it reads the history of its kind at its own pace, and is told that the
history is gone (410) if it falls behind the window.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pydantic_core import to_json

from simulator.apiserver.call import Call
from simulator.apiserver.history import Change, Stored
from simulator.apiserver.listing import read_version
from simulator.apiserver.selectors import Test, selector
from simulator.apiserver.status import ApiError, expired
from simulator.apiserver.store import Store

BOOKMARK_EVERY_S = 60.0
LONGEST_S = 3600.0
INITIAL_END = "k8s.io/initial-events-end"


class Watch:
    """One watch. `frames` gives the lines to send; it ends at the time-out or at an ERROR."""

    def __init__(self, store: Store, call: Call) -> None:
        query = call.query
        self._store = store
        self._call = call
        self._test: Test = selector(
            call.kind, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        self._bookmarks = query.get("allowWatchBookmarks") in ("1", "true")
        self._initial = query.get("sendInitialEvents") in ("1", "true")
        self._timeout_s = min(float(query.get("timeoutSeconds") or LONGEST_S), LONGEST_S)
        asked = query.get("resourceVersion", "")
        self._from_now = asked in ("", "0")
        self._version = store.version if self._from_now else read_version(asked)

    async def frames(self) -> AsyncIterator[bytes]:
        """JSON lines, many at a time where many are due."""
        clock = asyncio.get_running_loop().time
        end, bookmark_at = clock() + self._timeout_s, clock() + BOOKMARK_EVERY_S
        if first := b"".join(self._first()):
            yield first
        history = self._store.history(self._call.kind)
        while clock() < end:
            changed = history.changed
            if self._version < history.compacted:
                yield self._too_old(history.compacted)
                return
            if lines := b"".join(self._news(history.since(self._version))):
                yield lines
                continue
            if not await _set_before(changed, min(end, bookmark_at) - clock()):
                if self._bookmarks:
                    yield self._bookmark()
                bookmark_at = clock() + BOOKMARK_EVERY_S

    def _first(self) -> Iterator[bytes]:
        if not (self._from_now or self._initial):
            return
        objects = self._store.objects(self._call.kind)
        for key in sorted(objects):
            if self._chosen(objects[key]):
                yield _frame("ADDED", objects[key].raw)
        self._version = self._store.version
        if self._initial and self._bookmarks:
            yield self._bookmark({INITIAL_END: "true"})

    def _news(self, changes: list[Change]) -> Iterator[bytes]:
        for change in changes:
            self._version = change.version
            now = change.type != "DELETED" and self._chosen(change.after)
            was = change.before is not None and self._chosen(change.before)
            if now:
                yield _frame("MODIFIED" if was else "ADDED", change.after.raw)
            elif was:
                yield _frame("DELETED", _last_seen(change))

    def _chosen(self, stored: Stored) -> bool:
        namespace = self._call.namespace
        if namespace and stored.meta.get("namespace") != namespace:
            return False
        return self._test(stored.object)

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        kind = self._call.kind
        if not self._store.history(kind).since(self._version):
            self._version = max(self._version, self._store.version)
        meta: dict[str, Any] = {"resourceVersion": str(self._version)}
        if annotations:
            meta["annotations"] = annotations
        body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        return _frame("BOOKMARK", to_json(body))

    def _too_old(self, compacted: int) -> bytes:
        error: ApiError = expired(f"too old resource version: {self._version} ({compacted})")
        return _frame("ERROR", to_json(error.status()))


def _last_seen(change: Change) -> bytes:
    """What a watch is shown of an object that goes, or that it is not to see any more."""
    if change.type == "DELETED":
        return change.after.raw
    assert change.before is not None
    meta = {**change.before.meta, "resourceVersion": str(change.version)}
    return to_json({**change.before.object, "metadata": meta})


def _frame(type: str, raw: bytes) -> bytes:  # noqa: A002
    return b'{"type":"%s","object":%s}\n' % (type.encode(), raw)


async def _set_before(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await event.wait()
    except TimeoutError:
        return False
    return True
