"""Reads the audit log: every write that was tried, in the order of the answers.

The shape is `audit.k8s.io/v1`, one JSON object a line, at level RequestResponse.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

WRITES = ("create", "update", "patch", "delete", "deletecollection")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One write: who wanted what of which object, and what the server said."""

    at: datetime
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    code: int
    request: Json
    response: Json
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether it changed the world."""
        return 200 <= self.code < 300

    @property
    def what(self) -> str:
        """`nodes/n1/status`: what it was about."""
        return "/".join(each for each in (self.resource, self.name, self.subresource) if each)


def read_line(line: str) -> Write | None:
    """One line of the log; None for what is no finished write (reads, other stages, a cut line)."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if event.get("stage") != "ResponseComplete" or event.get("verb") not in WRITES:
        return None
    reference = event.get("objectRef") or {}
    response = event.get("responseObject") or {}
    if event["verb"] == "delete" and response.get("kind") == "Status":
        response = {}  # it says that the object is gone, and nothing of it
    user = event.get("user") or {}
    return Write(
        at=datetime.fromisoformat(event["stageTimestamp"]),
        user=str(user.get("username", "")),
        verb=str(event["verb"]),
        resource=str(reference.get("resource", "")),
        namespace=str(reference.get("namespace", "")),
        name=str(reference.get("name") or (response.get("metadata") or {}).get("name", "")),
        subresource=str(reference.get("subresource", "")),
        code=int((event.get("responseStatus") or {}).get("code", 0)),
        request=event.get("requestObject") or {},
        response=response,
        extra=user.get("extra") or {},
    )


MACHINES = "machines"
"""Changes that a provider made of machines on somebody's order, as a resource of its own."""
PROVIDER = "provider"


def read_change(line: str) -> Write | None:
    """One line of a provider's journal: what it did to which machine; None for a cut line."""
    return _entry(line, MACHINES, lambda said: (PROVIDER, said["change"], said["node"]))


NOTICES = "notices"
"""What people were told by notification, as a resource of its own."""


def read_notice(line: str) -> Write | None:
    """One line of what a receiver of notifications wrote down; None for a cut line."""
    return _entry(line, NOTICES, lambda said: ("", "create", said.get("key", "")))


def _entry(line: str, resource: str, whose: Callable[[Any], tuple[str, Any, Any]]) -> Write | None:
    """What a journal besides the audit says was done: by whom, which verb, to what."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    user, verb, name = whose(said)
    return Write(
        at=datetime.fromisoformat(said["at"]),
        user=user,
        verb=str(verb),
        resource=resource,
        namespace="",
        name=str(name),
        subresource="",
        code=200,
        request=said,
        response={},
    )


def read_lines(lines: Iterable[str]) -> list[Write]:
    """All writes of a log, in the order in which they took place."""
    return in_order([write for line in lines if (write := read_line(line))])


def in_order(writes: list[Write]) -> list[Write]:
    """Sort by the versions of the answers, since two lines may be logged in the wrong order.

    What has no version of its own (refusals, evictions, deletions) stays behind what came before.
    """
    latest, keys = 0, []
    for write in writes:
        version = (write.response.get("metadata") or {}).get("resourceVersion", "")
        stated = write.done and write.verb in ("create", "update", "patch") and version.isdigit()
        latest = max(latest, int(version)) if stated else latest
        keys.append(int(version) if stated else latest)
    order = sorted(range(len(writes)), key=lambda index: keys[index])
    return [writes[index] for index in order]
