"""A thin client of the Kubernetes API for the simulator's players: kubelets, controllers, people.

The engine has its own adapter; the players share no code with it, so that they can't share its
mistakes. They come back by themselves after an API server that was away.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import aiohttp

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
RETRY_SECONDS = 0.5
"""Between tries to reach an API server that does not answer."""
WATCH_SECONDS = 300
REQUEST = aiohttp.ClientTimeout(total=30)
UNREACHABLE = (aiohttp.ClientError, TimeoutError, OSError)


class ApiError(Exception):
    """The server said no: HTTP status, reason, message."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


class Api:
    """One player's connection, an async context manager."""

    def __init__(
        self,
        url: str,
        token: str,
        tls: ssl.SSLContext | None = None,
        timeout: aiohttp.ClientTimeout = REQUEST,
    ) -> None:
        """`url` without trailing slash; `tls` for https."""
        self._timeout = timeout
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._tls = tls

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls) if self._tls else None
        self._session = aiohttp.ClientSession(
            self.url, headers=self._headers, connector=connector, timeout=self._timeout
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str) -> Json:
        """Read an object or a collection."""
        return await self._call("GET", path)

    async def create(self, path: str, body: Json) -> Json:
        """POST to a collection or a subresource."""
        return await self._call("POST", path, body, "application/json")

    async def patch(self, path: str, body: Json, kind: str = STRATEGIC) -> Json:
        """Change one object."""
        return await self._call("PATCH", path, body, kind)

    async def delete(self, path: str, uid: str, grace: int | None = None) -> Json:
        """Delete one object of exactly this UID."""
        options: Json = {"preconditions": {"uid": uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return await self._call("DELETE", path, options, "application/json")

    async def insist(self, method: str, path: str, body: Json, kind: str) -> Json:
        """A call that is safe to repeat, repeated until the server answers."""
        while True:
            try:
                return await self._call(method, path, body, kind)
            except UNREACHABLE:
                await asyncio.sleep(RETRY_SECONDS)
            except ApiError as error:
                if error.code < 500 and error.code != 429:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def follow(self, path: str, **query: str) -> AsyncIterator[tuple[str, Json]]:
        """A collection for ever: `SYNC` with `{"items": [...]}` after each list, then the changes.

        Whoever was away is listed anew; nothing is sent twice for one version of an object.
        """
        while True:
            try:
                listed = await self._call("GET", path, query=query)
                yield "SYNC", listed
                version = listed["metadata"]["resourceVersion"]
                async for kind, thing in self._watch(path, query, version):
                    yield kind, thing
            except (*UNREACHABLE, ApiError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch(
        self, path: str, query: Mapping[str, str], version: str
    ) -> AsyncIterator[tuple[str, Json]]:
        wanted = {**query, "watch": "true", "resourceVersion": version}
        wanted["timeoutSeconds"] = str(WATCH_SECONDS)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(path, params=wanted, timeout=timeout) as answer:
            await _raise_for(answer)
            async for line in _lines(answer):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(status.get("code", 500), status.get("reason", ""), "watch")
                yield event["type"], event["object"]

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        kind: str = "",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if kind else {}
        async with self._session.request(
            method, path, data=data, headers=headers, params=query
        ) as answer:
            await _raise_for(answer)
            found: Json = await answer.json()
            return found


async def _raise_for(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    text = await answer.text()
    try:
        status = json.loads(text)
    except ValueError:
        status = {"message": text[:200]}
    raise ApiError(answer.status, status.get("reason", ""), status.get("message", ""))


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length, which aiohttp's own reader refuses."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
