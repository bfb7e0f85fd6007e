"""The log of every write, in the shape of Kubernetes audit events (audit.k8s.io/v1).

An event is in the file before its answer leaves, so whoever has seen an answer finds its event.
"""

import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from simulator.apiserver.call import Call

LOGGED = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(slots=True)
class Entry:
    """One request on its way into the log."""

    call: Call
    uri: str
    received: datetime
    source: str = ""
    agent: str = ""
    request: bytes = b""
    name: str = ""  # of the object in the body, where the path names none


class Audit:
    """Appends events to a file; without one it does nothing."""

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o600) if path else -1

    def write(self, entry: Entry, code: int, response: bytes, now: datetime) -> None:
        """Log an answer, if it answers a write."""
        if self._file < 0 or entry.call.verb not in LOGGED:
            return
        head = to_json(_head(entry))[:-1]
        status = b'{"metadata":{},"code":%d}' % code if code < 400 else _bare(response)
        times = to_json(
            {
                "requestReceivedTimestamp": _micro(entry.received),
                "stageTimestamp": _micro(now),
                "annotations": {
                    "authorization.k8s.io/decision": "forbid" if code == 403 else "allow",
                    "authorization.k8s.io/reason": "",
                },
            }
        )
        parts = [head, b',"responseStatus":', status]
        if entry.request:
            parts += [b',"requestObject":', entry.request]
        parts += [b',"responseObject":', response, b",", times[1:], b"\n"]
        os.write(self._file, b"".join(parts))

    def close(self) -> None:
        """Log no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _head(entry: Entry) -> dict[str, Any]:
    call = entry.call
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": str(uuid.uuid4()),
        "stage": "ResponseComplete",
        "requestURI": entry.uri,
        "verb": call.verb,
        "user": _user(call),
        "sourceIPs": [entry.source],
        "userAgent": entry.agent,
        "objectRef": _reference(call, call.name or entry.name),
    }


def _user(call: Call) -> dict[str, Any]:
    user = call.user
    found = {"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra}
    return {key: value for key, value in found.items() if value}


def _reference(call: Call, name: str) -> dict[str, str]:
    found = {
        "resource": call.kind.plural,
        "namespace": call.namespace,
        "name": name,
        "apiGroup": call.kind.group,
        "apiVersion": call.kind.version,
        "subresource": call.subresource,
    }
    return {key: value for key, value in found.items() if value}


def _bare(status: bytes) -> bytes:
    """A Status as `responseStatus` has it."""
    value = from_json(status)
    return to_json({k: v for k, v in value.items() if k not in ("kind", "apiVersion")})


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
