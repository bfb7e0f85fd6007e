"""From an HTTP request to its answer: who asks, may they, what is logged, what goes wrong on order.

What an answer says is decided in `api.py`; sockets and files are opened in `server.py`.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web
from pydantic_core import to_json

from simulator.apiserver import discovery, tables
from simulator.apiserver.api import Api, parse
from simulator.apiserver.audit import LOGGED, Audit, Entry
from simulator.apiserver.call import Call, User, place, verb_of
from simulator.apiserver.injection import Fault
from simulator.apiserver.kinds import REVIEWS
from simulator.apiserver.rbac import Rbac
from simulator.apiserver.reviews import review
from simulator.apiserver.simulation import Simulation
from simulator.apiserver.status import ApiError, no_such_path
from simulator.apiserver.store import Store
from simulator.apiserver.tokens import Tokens
from simulator.apiserver.watch import Watch

BODY_LIMIT_BYTES = 3 << 20
_HEALTH = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True, slots=True)
class Requests:
    """Answers HTTP requests."""

    store: Store
    tokens: Tokens
    rbac: Rbac
    audit: Audit
    api: Api
    now: Callable[[], datetime]
    simulation: Simulation

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to one request; a watch ends with its connection."""
        try:
            user = self.tokens.user(request.headers.get("Authorization"))
            return await self._route(request, user)
        except ApiError as error:
            return _failure(error)

    async def _route(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        path = request.path
        if path.startswith("/sim/"):
            body = await _body(request)
            done = await self.simulation.do(user, request.method, path, body)
            return _json(200, to_json(done))
        if len(path.strip("/").split("/")) < (4 if path.startswith("/apis") else 3):
            return self._other(user, path)
        call = self._call(request, user)
        entry = Entry(call, request.raw_path, self.now(), request.remote or "")
        entry.agent = request.headers.get("User-Agent", "")
        return await self._object(request, call, entry)

    def _other(self, user: User, path: str) -> web.Response:
        self.rbac.check_path(user, path)
        if path.rstrip("/") in _HEALTH:
            return web.Response(text="ok")
        return _json(200, to_json(discovery.discover(self.store.kinds, path)))

    def _call(self, request: web.BaseRequest, user: User) -> Call:
        group, version, namespace, plural, name, subresource = place(request.path)
        kind = self.store.kinds.find(group, version, plural)
        if kind is None or (namespace and not kind.namespaced):
            raise no_such_path()
        verb = verb_of(request.method, name, request.query)
        return Call(user, verb, kind, namespace, name, subresource, request.query)

    async def _object(
        self, request: web.BaseRequest, call: Call, entry: Entry
    ) -> web.StreamResponse:
        fault = self.simulation.faults.take(call.verb, request.path)
        if fault and fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if call.verb == "watch":
            self.rbac.check(call)
            return await self._watch(request, call)
        body = await _body(request)
        tripwire = self.simulation.tripwires.take(call, request.path, body)
        if tripwire and not tripwire.after:
            await tripwire.hold(call, request.path)
        code, raw, error = self._answer(request, call, body, fault)
        self._log(entry, call, body, (code, raw))
        if tripwire and tripwire.after:
            await tripwire.hold(call, request.path)
        if fault and fault.drop and request.transport:
            request.transport.abort()
        if error:
            return _failure(error)
        if tables.asked_for(request.headers, call):
            raw = tables.table(call, raw, self.now())
        return _json(code, raw)

    def _answer(
        self, request: web.BaseRequest, call: Call, body: bytes, fault: Fault | None
    ) -> tuple[int, bytes, ApiError | None]:
        try:
            if fault and fault.code:
                raise fault.error()
            self.rbac.check(call)
            if call.kind in REVIEWS:
                return 201, to_json(review(self.rbac, call, body)), None
            content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
            return *self.api.do(call, content_type, body), None
        except ApiError as error:
            return error.code, to_json(error.status()), error

    def _log(self, entry: Entry, call: Call, body: bytes, answer: tuple[int, bytes]) -> None:
        if call.verb not in LOGGED:
            return
        if body and (call.verb == "create" or answer[0] >= 400 or b"\n" in body):
            _describe(entry, body)
        else:
            entry.request = body
        self.audit.write(entry, *answer, self.now())

    async def _watch(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        watch = Watch(self.store, call)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        task: Any = asyncio.current_task()
        self.simulation.watches.add(task)
        try:
            async for lines in watch.frames():
                await response.write(lines)
        finally:
            self.simulation.watches.discard(task)
        return response


def _describe(entry: Entry, body: bytes) -> None:
    """Note a body that is not known to be one line of JSON, and the name that it gives."""
    try:
        value = parse(body)
    except ApiError:
        return
    entry.request = to_json(value)
    if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
        entry.name = value["metadata"].get("name", "")


async def _body(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {BODY_LIMIT_BYTES}"
        raise ApiError(413, "RequestEntityTooLarge", message) from error


def request_of(*arguments: Any) -> web.BaseRequest:
    """A request with our limit of its body, for aiohttp's server."""
    make: Any = web.BaseRequest
    request: web.BaseRequest = make(
        *arguments, asyncio.get_running_loop(), client_max_size=BODY_LIMIT_BYTES
    )
    return request


def _json(code: int, raw: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=code, body=raw, content_type="application/json", headers=headers)


def _failure(error: ApiError) -> web.Response:
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else None
    return _json(error.code, to_json(error.status()), headers)
