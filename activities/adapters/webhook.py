"""Notifications by webhook: one POST of JSON, signed where there is a secret.

The address is itself a secret with many receivers: it is read from the environment alone, and only
its host is ever said. Nothing is repeated here: whoever asks knows whether to.
"""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from activities.notifier import Notifier
from fleet.errors import Refused, Transient

URL = "GPUMEND_NOTIFY_URL"
SECRET_FILE = "GPUMEND_NOTIFY_SECRET_FILE"  # noqa: S105  (the name of a variable)
SIGNATURE = "X-Gpumend-Signature"
KEY = "Idempotency-Key"
TIMEOUT = httpx.Timeout(10.0, connect=5.0)
ANSWER_LIMIT = 200
_LATER = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where notifications go, and the secret that signs them (empty: they are not signed)."""

    url: str = field(repr=False)
    secret: bytes = field(default=b"", repr=False)

    @property
    def host(self) -> str:
        """All of the address that may be said."""
        return httpx.URL(self.url).host


def read_receiver(environment: Mapping[str, str]) -> Receiver | None:
    """The receiver of the environment, None where none is set; ValueError for a wrong one."""
    url, file = environment.get(URL, "").strip(), environment.get(SECRET_FILE, "").strip()
    if not url:
        if file:
            raise ValueError(f"{SECRET_FILE} is set, {URL} is not: set both or none")
        return None
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as problem:
        raise ValueError(f"{URL} is no address: {problem}") from problem
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{URL} must begin with https:// or http:// and name a host")
    return Receiver(url, _secret(file) if file else b"")


def _secret(file: str) -> bytes:
    try:
        secret = Path(file).read_bytes().strip()
    except OSError as problem:
        raise ValueError(f"{SECRET_FILE} cannot be read: {problem}") from problem
    if not secret:
        raise ValueError(f"{SECRET_FILE} names an empty file: {file}")
    return secret


class Webhook:
    """Posts bodies to one receiver."""

    def __init__(self, receiver: Receiver, client: httpx.AsyncClient) -> None:
        self._receiver = receiver
        self._client = client

    async def post(self, body: Mapping[str, Any]) -> None:
        """Deliver; raise Transient for what may work later, Refused for a no."""
        data = json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", KEY: str(body.get("key", ""))}
        if self._receiver.secret:
            headers[SIGNATURE] = signature(self._receiver.secret, data)
        where = f"the receiver at {self._receiver.host}"
        try:
            answer = await self._client.post(
                self._receiver.url, content=data, headers=headers, timeout=TIMEOUT
            )
        except httpx.HTTPError as problem:
            raise Transient(f"{where}: {type(problem).__name__}") from problem
        if answer.is_success:
            return
        said = f"{where} answered {answer.status_code}: {answer.text[:ANSWER_LIMIT]!r}"
        if answer.status_code in _LATER or answer.is_server_error:
            raise Transient(said)
        raise Refused(answer.status_code, "notification-refused", said)


def signature(secret: bytes, data: bytes) -> str:
    """`sha256=` and the hex HMAC-SHA256 of the body as it was sent."""
    return f"sha256={hmac.new(secret, data, hashlib.sha256).hexdigest()}"


@asynccontextmanager
async def notifying(receiver: Receiver | None) -> AsyncIterator[Notifier | None]:
    """A notifier for this receiver, None where there is none."""
    if receiver is None:
        yield None
        return
    async with httpx.AsyncClient() as client:
        yield Notifier(Webhook(receiver, client).post)
