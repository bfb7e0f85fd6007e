"""What a pod is called, by its UID: from the kubelet's folders of logs, without the API server.

The kubelet keeps `/var/log/pods/<namespace>_<name>_<uid>` from a pod's first container until it has
put the pod away. Names speak of customers and projects: they go into no condition (decision 21).
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from fleet.pod import is_pod_uid

FOLDER = "var/log/pods"
FOLDERS_LIMIT = 4_096
"""Folders looked at; kubelets take some hundreds of pods, and old ones go."""
NAMES_LIMIT = 512
"""Names remembered after their folder has gone; those that were asked for longest ago go first."""
LOOK_EVERY = timedelta(seconds=1)
"""A storm names pods that nobody knows very often: the folder is listed no more often than this."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_FOLDER = re.compile(rf"({_LABEL})_([a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?)_([0-9a-f-]{{32,36}})")


@dataclass(frozen=True, slots=True)
class PodName:
    """A pod's namespace and name."""

    namespace: str
    name: str


def parse_folder(text: str) -> tuple[str, PodName] | None:
    """UID and name of the pod that a folder is of; None for what no kubelet writes."""
    found = _FOLDER.fullmatch(text)
    if not found or not is_pod_uid(found[3]):
        return None
    return found[3], PodName(found[1], found[2])


def names_of(folders: Iterable[str]) -> Mapping[str, PodName]:
    """The pods of these folders by UID; a UID that two of them claim for different pods is out."""
    found: dict[str, PodName] = {}
    doubted: set[str] = set()
    for uid, name in filter(None, map(parse_folder, folders)):
        if found.setdefault(uid, name) != name:
            doubted.add(uid)
    return {uid: name for uid, name in found.items() if uid not in doubted}


@dataclass(slots=True)
class PodNames:
    """The names of pods of one machine, as far as they were asked for."""

    root: Path
    _known: dict[str, PodName] = field(default_factory=dict)
    _looked: datetime | None = None

    def of(self, uid: str, now: datetime) -> PodName | None:
        """What a pod is called; None where this node's kubelet does not say."""
        if uid not in self._known and self._due(now):
            self._looked = now
            if (name := names_of(_folders(self.root)).get(uid)) is not None:
                self._keep(uid, name)
        elif uid in self._known:
            self._keep(uid, self._known.pop(uid))
        return self._known.get(uid)

    def _keep(self, uid: str, name: PodName) -> None:
        self._known[uid] = name
        if len(self._known) > NAMES_LIMIT:
            del self._known[next(iter(self._known))]

    def _due(self, now: datetime) -> bool:
        return self._looked is None or abs(now - self._looked) >= LOOK_EVERY


def _folders(root: Path) -> list[str]:
    try:
        with os.scandir(root / FOLDER) as entries:
            return [each.name for each, _ in zip(entries, range(FOLDERS_LIMIT), strict=False)]
    except OSError:
        return []
