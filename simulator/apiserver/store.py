"""The objects, the one counter of versions, and the only way to change either.

Knows nothing of HTTP, users or rules. Everything runs on one event loop; a commit has no await.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator.apiserver.history import Change, History, Key, Stored
from simulator.apiserver.journal import REWRITE_ABOVE_BYTES, Journal
from simulator.apiserver.kinds import Kind, Kinds, custom_kinds
from simulator.apiserver.status import expired

WINDOW = 4_000  # changes a kind that a watch may look back
TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Store:
    """All objects. With a `path`, they are read from the journal there and written to it."""

    def __init__(self, path: Path | None = None, window: int = WINDOW) -> None:
        self.kinds = Kinds()
        self.version = 1
        self._window = window
        self._objects: dict[str, dict[Key, Stored]] = {}
        self._histories: dict[str, History] = {}
        self._journal = Journal(path) if path else None
        if self._journal:
            self._replay(self._journal)

    def get(self, kind: Kind, namespace: str, name: str) -> Stored | None:
        """The newest version of an object."""
        return self.objects(kind).get((namespace, name))

    def objects(self, kind: Kind) -> dict[Key, Stored]:
        """The newest versions of all objects of a kind; not to be changed."""
        return self._objects.setdefault(kind.resource, {})

    def history(self, kind: Kind) -> History:
        """What happened to the objects of a kind."""
        history = self._histories.get(kind.resource)
        if history is None:
            history = self._histories[kind.resource] = History(self._window)
            history.compacted = self._floor
        return history

    def at(self, kind: Kind, version: int) -> dict[Key, Stored]:
        """All objects of a kind as they were at `version`; 410 if that is no longer known."""
        history = self.history(kind)
        if version < history.compacted:
            raise expired(TOO_OLD_CONTINUE)
        objects = dict(self.objects(kind))
        for change in history.back_to(version):
            if change.before is None:
                objects.pop(change.after.key, None)
            else:
                objects[change.before.key] = change.before
        return objects

    def put(self, kind: Kind, content: dict[str, Any]) -> Stored:
        """Create or replace an object, as it is given but for its resourceVersion."""
        stored = self._next(kind, content)
        before = self.objects(kind).get(stored.key)
        self._commit(Change("MODIFIED" if before else "ADDED", stored, before))
        return stored

    def remove(self, kind: Kind, before: Stored) -> Stored:
        """Take an object away; returns its last state, at the version of its end."""
        assert self.objects(kind).get(before.key) is before
        gone = self._next(kind, before.object)
        self._commit(Change("DELETED", gone, before))
        return gone

    def compact(self) -> None:
        """Forget all history: watches and continue tokens from before now are too old."""
        self._floor = self.version
        for history in self._histories.values():
            history.forget(self.version)
            history.wake()

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal:
            self._journal.close()

    _floor = 0

    def _next(self, kind: Kind, content: dict[str, Any]) -> Stored:
        self.version += 1
        meta = {**content["metadata"], "resourceVersion": str(self.version)}
        return Stored(kind, {**content, "metadata": meta}, self.version)

    def _commit(self, change: Change) -> None:
        if self._journal:
            self._journal.append(change)
        self._apply(change)
        if self._journal and self._journal.size > REWRITE_ABOVE_BYTES:
            self._journal.rewrite(self.version, self._raws())
            self.compact()

    def _apply(self, change: Change) -> None:
        stored = change.after
        objects = self.objects(stored.kind)
        if change.type == "DELETED":
            del objects[stored.key]
        else:
            objects[stored.key] = stored
        if stored.kind.plural == "customresourcedefinitions":
            self._define(change)
        self.history(stored.kind).append(change)

    def _define(self, change: Change) -> None:
        if change.type == "DELETED":
            self.kinds.forget(change.after.object)
            return
        self.kinds.define(change.after.object)
        for kind in custom_kinds(change.after.object):
            if change.before is None:  # it has no history from before it was known
                self.history(kind).forget(change.version)

    def _raws(self) -> Iterable[bytes]:
        """All objects, the definitions of custom kinds first."""
        definitions = "customresourcedefinitions.apiextensions.k8s.io"
        for resource in sorted(self._objects, key=lambda r: r != definitions):
            for stored in self._objects[resource].values():
                yield stored.raw

    def _replay(self, journal: Journal) -> None:
        for entry in journal.read():
            if "version" in entry:
                self.version = self._floor = entry["version"]
            else:
                self._apply(self._read(entry["type"], entry["object"]))
        for history in self._histories.values():
            history.compacted = max(history.compacted, self._floor)
        journal.open()

    def _read(self, type: str, content: dict[str, Any]) -> Change:  # noqa: A002
        group, _, version = content["apiVersion"].rpartition("/")
        kind = next(
            k
            for k in self.kinds
            if (k.group, k.version, k.kind) == (group, version, content["kind"])
        )
        number = int(content["metadata"]["resourceVersion"])
        self.version = max(self.version, number)
        stored = Stored(kind, content, number)
        return Change(type, stored, self.objects(kind).get(stored.key))
