"""The port `fleet.ports.Kubernetes` over `kubernetes.aio`, in raw JSON.

Of that client we use the configuration (TLS, exec plugins, tokens) and its REST object (pool, TLS,
proxies), not its ApiClient and Watch: these build models (ten times the cost of `json.loads`,
measured) and hide the framing of a stream, its idle time and the difference between a request that
was never sent and one whose answer was lost. Nothing is repeated here: whoever asks knows whether
repeating is safe. Two exceptions lie before the server acts: a 401 renews the credentials once, and
an overloaded server (429 without a cause) slows down the whole client.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio.client.rest import RESTClientObject

from activities.adapters.kubernetes_access import Access, NotConfigured, load_access
from activities.adapters.kubernetes_answers import error_of
from activities.adapters.kubernetes_lines import Lines, read_event
from fleet.errors import Ambiguous, Refused, TooManyRequests, Transient
from fleet.ports import Json, Page, PatchType, WatchEvent

CONNECTIONS = 64
"""Requests at once. A storm of 500 patches queues here instead of opening 500 TLS connections."""

WATCHES = 2_000
"""Watches at once, one a running drain or reboot: they wait, so they have connections apart."""

REQUEST = aiohttp.ClientTimeout(total=60, connect=20, sock_connect=5, sock_read=30)
"""`connect` includes the wait for a free connection; `total` covers a page of 500 large Nodes."""

WATCH_SECONDS = 60
"""After this the server ends a watch, quietly; the caller resumes from its last version."""

WATCH = aiohttp.ClientTimeout(total=None, connect=20, sock_connect=5, sock_read=WATCH_SECONDS + 15)
"""A watch that is silent for longer than the server would keep it open is a dead connection."""

LONGEST_PAUSE = 10.0
"""Seconds for which one hint of an overloaded server holds back this client; a heartbeat is 60."""

_UNAUTHORIZED = 401

_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
_BROKE = (aiohttp.ClientError, TimeoutError, OSError)


class KubernetesApi:
    """One API server; see `fleet.ports.Kubernetes` for what each method promises."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._requests = _pool(access, CONNECTIONS)
        self._watches = _pool(access, WATCHES)
        self._not_before = 0.0

    async def close(self) -> None:
        """Close every connection, those of running watches too."""
        await self._requests.close()
        await self._watches.close()

    async def get(self, path: str) -> Json:
        """Read one object."""
        return await self._ask(_Request("GET", path))

    async def page(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        limit: int = 500,
        token: str = "",
    ) -> Page:
        """Read one page of a collection; `query` holds selectors."""
        asked = {**(query or {}), "limit": str(limit), **({"continue": token} if token else {})}
        answer = await self._ask(_Request("GET", path, asked))
        metadata = answer.get("metadata") or {}
        return Page(
            items=tuple(answer.get("items") or ()),
            resource_version=metadata.get("resourceVersion", ""),
            next_page=metadata.get("continue", ""),
        )

    @asynccontextmanager
    async def watch(
        self, path: str, *, resource_version: str, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Follow a collection; the iterator ends where the server ends the watch.

        Raises Expired where the version is too old, Transient where the connection broke.
        """
        asked = {
            **(query or {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        request = _Request("GET", path, asked)
        answer = await self._send(self._watches, request, WATCH)
        try:
            await self._refuse_errors(answer, request)
            yield _events(answer)
        finally:
            answer.close()

    async def create(self, path: str, body: Json) -> Json:
        """POST to a collection or a subresource such as `.../pods/p/eviction`."""
        return await self._ask(_Request("POST", path, body=body))

    async def patch(self, path: str, body: Json | list[Json], kind: PatchType) -> Json:
        """Change one object; guards (uid, resourceVersion) are part of the body."""
        return await self._ask(_Request("PATCH", path, body=body, content=kind.value))

    async def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> Json:
        """Delete one object of exactly this UID; a grace below one second is refused here."""
        if grace_seconds is not None and grace_seconds < 1:
            raise ValueError(f"grace of {grace_seconds} s: deletes a Pod that may still be running")
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        return await self._ask(_Request("DELETE", path, body=body))

    async def _ask(self, request: "_Request") -> Json:
        answer = await self._send(self._requests, request, REQUEST)
        try:
            await self._refuse_errors(answer, request)
            data = await answer.read()
        except _BROKE as problem:
            raise request.lost(problem) from problem
        finally:
            answer.release()
        return _object(request, data)

    async def _send(
        self, pool: RESTClientObject, request: "_Request", timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send, and once more with new credentials where the server did not know the old ones."""
        await self._wait_out_overload()
        answer = await self._send_once(pool, request, timeout)
        if answer.status != _UNAUTHORIZED:
            return answer
        answer.release()
        await self._access.renew()
        return await self._send_once(pool, request, timeout)

    async def _send_once(
        self, pool: RESTClientObject, request: "_Request", timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        try:
            answer = await pool.request(  # type: ignore[no-untyped-call]
                request.method,
                self._access.configuration.host.rstrip("/") + request.target,
                headers=await self._headers(request.content),
                body=request.body,
                _request_timeout=timeout,
            )
        except (NotConfigured, *_NEVER_SENT) as problem:
            raise Transient(f"{request} was not sent: {_say(problem)}") from problem
        except _BROKE as problem:
            raise request.lost(problem) from problem
        raw: aiohttp.ClientResponse = answer.response
        return raw

    async def _headers(self, content: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            "User-Agent": "gpumend",  # also the field manager of what we write
            "Content-Type": content,
        }
        authorization = await self._access.authorization()
        return {**headers, "Authorization": authorization} if authorization else headers

    async def _refuse_errors(self, answer: aiohttp.ClientResponse, request: "_Request") -> None:
        if answer.ok:
            return
        after = answer.headers.get("Retry-After")
        try:
            text = await answer.read()
        except _BROKE as problem:
            raise request.lost(problem) from problem
        error = error_of(answer.status, text, write=request.write, retry_after=after)
        if isinstance(error, TooManyRequests) and not error.causes and error.retry_after:
            pause = min(error.retry_after, LONGEST_PAUSE)
            self._not_before = max(self._not_before, time.monotonic() + pause)
        raise error

    async def _wait_out_overload(self) -> None:
        pause = self._not_before - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)


@asynccontextmanager
async def connect(kubeconfig: str | None = None) -> AsyncIterator[KubernetesApi]:
    """The API server of this kubeconfig, or of the environment; raises NotConfigured.

    Nothing is sent: a server that is away shows at the first call, as Transient.
    """
    api = KubernetesApi(await load_access(kubeconfig))
    try:
        yield api
    finally:
        await api.close()


def _pool(access: Access, size: int) -> RESTClientObject:
    configuration = access.configuration
    configuration.connection_pool_maxsize = size
    configuration.retries = None
    return RESTClientObject(configuration)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[WatchEvent]:
    lines = Lines()
    try:
        async for chunk in answer.content.iter_any():
            for line in lines.feed(chunk):
                yield read_event(line)
    except _BROKE as problem:
        raise Transient(f"a watch broke: {_say(problem)}") from problem


def _object(request: "_Request", data: bytes) -> Json:
    try:
        thing: Any = json.loads(data)
    except ValueError as problem:
        raise request.lost(problem) from problem
    if not isinstance(thing, dict):
        raise Refused(200, "NotAnObject", f"{request} answered {data[:200]!r}")
    return thing


def _say(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Json | list[Json] | None = None
    content: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query, quote_via=quote)}" if self.query else self.path

    @property
    def write(self) -> bool:
        return self.method != "GET"

    def lost(self, problem: Exception) -> Transient | Ambiguous:
        """An answer that did not come: a read may be repeated, a write may have happened."""
        what = f"{self}: the answer was lost: {_say(problem)}"
        return Ambiguous(what) if self.write else Transient(what)
