"""What happened to the objects of one kind, as far back as the window reaches."""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from simulator.apiserver.kinds import Kind

Key = tuple[str, str]  # namespace ("" for cluster-scoped), name


class Stored:
    """One version of one object. Never changed; its JSON is made once for all who read it."""

    __slots__ = ("_cut", "kind", "object", "raw", "version")

    def __init__(self, kind: Kind, content: dict[str, Any], version: int) -> None:
        head = {"kind": kind.kind, "apiVersion": kind.api_version}
        self.kind = kind
        self.object = {**head, **{k: v for k, v in content.items() if k not in head}}
        self.version = version
        self.raw = to_json(self.object)
        self._cut = len(to_json(head))

    @property
    def item(self) -> bytes:
        """As an item of a list: built-in kinds leave kind and apiVersion out there."""
        return self.raw if self.kind.custom else b"{" + self.raw[self._cut :]

    @property
    def key(self) -> Key:
        """Namespace and name."""
        meta = self.object["metadata"]
        return meta.get("namespace", ""), meta["name"]

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata; not to be changed."""
        meta: dict[str, Any] = self.object["metadata"]
        return meta


class Change:
    """One committed write: the object after it (for a deletion: its last state), and before."""

    __slots__ = ("after", "before", "type", "version")

    def __init__(self, type: str, after: Stored, before: Stored | None) -> None:  # noqa: A002
        self.type = type
        self.after = after
        self.before = before
        self.version = after.version


class History:
    """The changes of one kind in order, the newest `window` of them at least."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self.compacted = 0  # changes up to this version are gone
        self.changed = asyncio.Event()

    def append(self, change: Change) -> None:
        """Add the newest change and wake who waits for it."""
        self._changes.append(change)
        self._versions.append(change.version)
        if len(self._changes) > 2 * self._window:
            self.forget(self._versions[-self._window - 1])
        self.wake()

    def wake(self) -> None:
        """Wake all who wait, change or not."""
        waited, self.changed = self.changed, asyncio.Event()
        waited.set()

    def forget(self, version: int) -> None:
        """Drop all changes up to `version`."""
        cut = bisect_right(self._versions, version)
        del self._changes[:cut], self._versions[:cut]
        self.compacted = max(self.compacted, version)

    def since(self, version: int) -> list[Change]:
        """The changes after `version`, oldest first."""
        return self._changes[bisect_right(self._versions, version) :]

    def back_to(self, version: int) -> Iterator[Change]:
        """The changes after `version`, newest first."""
        return reversed(self.since(version))
