"""Whose a process is, by its cgroup: a pod's, the host's own, or nobody can tell. Pure.

Kubelets name a pod's cgroup by its UID: `kubepods[-burstable|-besteffort]-pod<uid>.slice` with
systemd (`_` for `-`), `kubepods/[burstable|besteffort]/pod<uid>` without, static pods by the hash
of their manifest. Below it every runtime goes its own way, which does not matter.

The kernel writes paths as the reader's cgroup namespace sees them: what lies outside begins with
`/..`, and its first names may be missing.
"""

import re
from dataclasses import dataclass

TEXT_LIMIT = 16_384
"""Characters of a cgroup file that are looked at: version 1 has some fifteen hierarchies."""

_UID = r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
_SLICE = re.compile(rf"(?:[a-z0-9_]+-)*kubepods(?:-burstable|-besteffort)?-{_UID}\.slice(?::.*)?")
_FOLDER = re.compile(_UID)
_KUBEPODS = frozenset({"kubepods", "burstable", "besteffort", "guaranteed", ".."})
"""What the cgroup of a pod may lie in without systemd; in a namespace of ours the rest is cut."""
_HOSTS = frozenset({"system.slice", "user.slice", "machine.slice", "init.scope", "docker", "lxc"})
"""What no kubelet makes: a process below one of these, and in no pod, is the host's own."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a process is: a pod's by its UID, or the host's own (`pod` is empty)."""

    pod: str = ""


def owner_of(text: str) -> Owner | None:
    """Who owns the process with this `/proc/<pid>/cgroup`; None where it cannot be told.

    Two pods in one another, or in two hierarchies, are two clusters' words: neither is believed.
    """
    paths = [_path(line) for line in text[:TEXT_LIMIT].splitlines()]
    pods = {uid for path in paths for uid in _pods(path)}
    if len(pods) == 1:
        return Owner(pods.pop())
    return Owner() if not pods and any(_HOSTS.intersection(path) for path in paths) else None


def _path(line: str) -> list[str]:
    """The names of the path in a line `hierarchy:controllers:path`."""
    path = line.partition(":")[2].partition(":")[2]
    return path.removesuffix(" (deleted)").split("/")[1:]


def _pods(path: list[str]) -> list[str]:
    found = []
    for name, parent in zip(path, ["", *path], strict=False):
        folder = _FOLDER.fullmatch(name) if parent in _KUBEPODS else None
        if matched := folder or _SLICE.fullmatch(name):
            found.append(matched[1].replace("_", "-"))
    return found
