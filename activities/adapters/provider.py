"""The port `fleet.ports.Provider` over a webhook that users implement: docs/provider-openapi.yaml.

Reads are repeated here a few times. A change never is: whoever asks looks at the operation by its
id first.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from activities.adapters.provider_access import ProviderAccess, read_access
from activities.adapters.provider_answers import (
    error_of,
    read_abilities,
    read_object,
    read_operation,
    read_power,
)
from activities.no_provider import NoProvider
from fleet.errors import Ambiguous, NotFound, TooManyRequests, Transient
from fleet.machine import Change, MachineAddress, Operation, Power
from fleet.ports import Provider

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
"""Seconds; an operation takes minutes and is polled, so an answer has no reason to take longer."""

READ_PAUSES = (0.5, 2.0)
"""Seconds before a read that failed is repeated; then the caller hears of it."""

CONNECTIONS = 32
"""Requests at once; a webhook in front of a cloud's API is not made for more."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

T = TypeVar("T")


class WebhookProvider:
    """A provider behind a webhook; see `fleet.ports.Provider` for what each method promises."""

    def __init__(
        self,
        access: ProviderAccess,
        client: httpx.AsyncClient,
        pauses: tuple[float, ...] = READ_PAUSES,
    ) -> None:
        self._access = access
        self._client = client
        self._pauses = pauses

    async def abilities(self) -> frozenset[Change]:
        """What it can do at all."""
        return await self._read("/v1/abilities", {}, read_abilities)

    async def power(self, machine: MachineAddress) -> Power:
        """What it says of the machine now."""
        return await self._read("/v1/machine", _fields(machine), read_power)

    async def begin(self, operation: str, change: Change, machine: MachineAddress) -> Operation:
        """Ask for a change under an id."""
        body = {"change": change.value, "machine": _fields(machine)}
        answer = await self._send("PUT", _path(operation), json=body)
        return _understood(answer, lambda said: read_operation(said, operation), Ambiguous)

    async def operation(self, operation: str) -> Operation | None:
        """How far it is; None where nothing was ever begun under this id."""
        try:
            return await self._read(
                _path(operation), {}, lambda said: read_operation(said, operation)
            )
        except NotFound:
            return None

    async def _read(
        self, path: str, query: Mapping[str, str], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        for pause in self._pauses:
            try:
                return await self._read_once(path, query, read)
            except (Transient, TooManyRequests) as problem:
                await asyncio.sleep(max(pause, min(problem.retry_after or 0.0, self._pauses[-1])))
        return await self._read_once(path, query, read)

    async def _read_once(
        self, path: str, query: Mapping[str, str], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        answer = await self._send("GET", path, params=query)
        return _understood(answer, read, Transient)

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        what = f"{method} {path}"
        try:
            authorization = self._access.authorization()
            headers = {"Authorization": authorization} if authorization else {}
            url = self._access.url + path
            answer = await self._client.request(method, url, headers=headers, **content)
        except (*_NEVER_SENT, OSError) as problem:
            raise Transient(f"{what} did not reach the provider: {_say(problem)}") from problem
        except httpx.HTTPError as problem:
            lost = Transient if method == "GET" else Ambiguous
            raise lost(f"{what}: the provider's answer was lost: {_say(problem)}") from problem
        if not answer.is_success:
            after = answer.headers.get("Retry-After")
            change = method != "GET"
            raise error_of(answer.status_code, answer.content, change=change, retry_after=after)
        return answer


@asynccontextmanager
async def provider_of(environment: Mapping[str, str] = os.environ) -> AsyncIterator[Provider]:
    """The provider that the environment names, or one that can do nothing.

    Raises ValueError and OSError for settings that cannot be used. Nothing is sent.
    """
    access = read_access(environment)
    if access is None:
        yield NoProvider()
        return
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(timeout=TIMEOUT, verify=access.trust(), limits=limits) as client:
        yield WebhookProvider(access, client)


def _understood(
    answer: httpx.Response,
    read: Callable[[Mapping[str, Any]], T],
    otherwise: type[Transient] | type[Ambiguous],
) -> T:
    """What an answer says; one that is not as described says nothing."""
    try:
        return read(read_object(answer.content))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        said = answer.content[:200]
        raise otherwise(f"no answer of a provider: {said!r} ({problem!r})") from problem


def _fields(machine: MachineAddress) -> dict[str, str]:
    fields = {
        "node": machine.node,
        "provider_id": machine.provider_id,
        "system_uuid": machine.system_uuid,
    }
    return {name: value for name, value in fields.items() if value}


def _path(operation: str) -> str:
    return f"/v1/operations/{quote(operation, safe='')}"


def _say(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
