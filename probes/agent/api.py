"""The few calls to the API server that an agent makes, with the standard library alone.

`http.client` costs the agent 12 MiB less than httpx (measured: 22 against 34 MiB resident), and one
connection a call is enough: an agent at rest makes two calls in two minutes.
"""

import contextlib
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fleet.errors import (
    Ambiguous,
    Conflict,
    NotFound,
    Refused,
    TooManyRequests,
    Transient,
)

TIMEOUT = 10.0
"""Seconds for a connection, and for each wait on it."""
ANSWER_LIMIT = 4 * 1024 * 1024
"""Bytes of an answer; a Node is about 14 KB."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where it is and how we prove who we are. The token rotates: it is read for every call."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None

    def get(self, path: str) -> Json:
        """Read one object; raises the errors of `fleet.errors`."""
        return self._call("GET", path)

    def create(self, path: str, body: Json) -> Json:
        """Create an object; raises the errors of `fleet.errors`."""
        return self._call("POST", path, body, "application/json")

    def patch(self, path: str, body: Json, kind: str) -> Json:
        """Patch an object (`kind` is a content type); raises the errors of `fleet.errors`."""
        return self._call("PATCH", path, body, kind)

    def _call(self, method: str, path: str, body: Json | None = None, kind: str = "") -> Json:
        headers = {"Accept": "application/json", "User-Agent": "gpumend-agent"}
        if kind:
            headers["Content-Type"] = kind
        sent = False
        try:
            if self.token_file:
                headers["Authorization"] = f"Bearer {self.token_file.read_text('ascii').strip()}"
            with contextlib.closing(self._connect()) as connection:
                connection.connect()
                sent = method != "GET"
                text = None if body is None else json.dumps(body)
                connection.request(method, self._path(path), text, headers)
                answer = connection.getresponse()
                return _read(answer)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            what = f"{method} {path}: {problem or type(problem).__name__}"
            raise (Ambiguous(what) if sent else Transient(what)) from problem

    def _connect(self) -> http.client.HTTPConnection:
        where = urlsplit(self.url)
        host = where.hostname or "localhost"
        if where.scheme == "http":
            return http.client.HTTPConnection(host, where.port or 80, timeout=TIMEOUT)
        trust = ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
        return http.client.HTTPSConnection(host, where.port or 443, timeout=TIMEOUT, context=trust)

    def _path(self, path: str) -> str:
        return urlsplit(self.url).path.rstrip("/") + quote(path, safe="/?=&")


def _read(answer: http.client.HTTPResponse) -> Json:
    raw = answer.read(ANSWER_LIMIT)
    if answer.status < 300:
        parsed = json.loads(raw)
        if not isinstance(parsed, dict):
            raise ValueError("the answer is not an object")
        return parsed
    raise _error(answer, raw)


def _error(answer: http.client.HTTPResponse, raw: bytes) -> Exception:
    code = answer.status
    reason, message = _status(raw) or (answer.reason, raw[:200].decode("utf-8", "replace"))
    hint = answer.getheader("Retry-After", "")
    after = float(hint) if hint.isdigit() else None
    if code == 429:
        return TooManyRequests(code, reason, message, retry_after=after)
    if code >= 500:
        return Transient(f"{code} {reason}: {message}", retry_after=after)
    return {404: NotFound, 409: Conflict}.get(code, Refused)(code, reason, message)


def _status(raw: bytes) -> tuple[str, str] | None:
    try:
        fields = json.loads(raw)
        return str(fields["reason"]), str(fields["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return None
