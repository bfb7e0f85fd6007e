"""Starts the engine's worker with a port to Kubernetes that writes down each call it is asked for.

`python -m console.bench.incident_worker JOURNAL …`. The engine has no such switch. A call is one of
the port's methods, answered or not: a page of a list is one, and so is a watch however long it is
followed. Nothing is judged here.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TextIO

from temporalio import activity

from fleet.ports import Json, Kubernetes, Page, PatchType, WatchEvent
from simulator.demo.another_port import run_worker


class WrittenDown:
    """The port; each call is a line of the journal before it is made, answers pass unchanged."""

    def __init__(self, inner: Kubernetes, journal: TextIO) -> None:
        """`journal` gets one JSON object a line: `call`, `path`, in which activity (`during`) of
        which workflow (`of`), both empty where no activity runs.
        """
        self._inner = inner
        self._journal = journal

    async def get(self, path: str) -> Json:
        """As the port."""
        self._note("get", path)
        return await self._inner.get(path)

    async def page(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        limit: int = 500,
        token: str = "",
    ) -> Page:
        """As the port."""
        self._note("page", path)
        return await self._inner.page(path, query=query, limit=limit, token=token)

    def watch(
        self, path: str, *, resource_version: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """As the port."""
        self._note("watch", path)
        return self._inner.watch(path, resource_version=resource_version, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """As the port."""
        self._note("create", path)
        return await self._inner.create(path, body)

    async def patch(self, path: str, body: Json | list[Json], kind: PatchType) -> Json:
        """As the port."""
        self._note("patch", path)
        return await self._inner.patch(path, body, kind)

    async def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> Json:
        """As the port."""
        self._note("delete", path)
        return await self._inner.delete(path, uid=uid, grace_seconds=grace_seconds)

    def _note(self, call: str, path: str) -> None:
        info = activity.info() if activity.in_activity() else None
        whose = {"of": info.workflow_id, "during": info.activity_type} if info else {}
        line = {"call": call, "path": path, "of": "", "during": "", **whose}
        self._journal.write(json.dumps(line) + "\n")
        self._journal.flush()  # whoever counts reads it while this process runs


def main(journal: str, arguments: Sequence[str]) -> int:
    """Run the engine's own composition root with this port in place of the bare one."""
    with open(journal, "a", encoding="utf-8") as lines:
        return run_worker(lambda bare: WrittenDown(bare, lines), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
