"""The HTTP side: reads requests, checks who asks, logs writes, sends answers and watches."""

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aiohttp import web
from pydantic_core import to_json

from simulator.apiserver import discovery, tables
from simulator.apiserver.api import Api, parse
from simulator.apiserver.audit import LOGGED, Audit, Entry
from simulator.apiserver.call import Call, User, place, verb_of
from simulator.apiserver.disruption import Disruption
from simulator.apiserver.fence import Fence
from simulator.apiserver.injection import Fault, Faults, read_fault
from simulator.apiserver.rbac import MASTERS, Rbac
from simulator.apiserver.status import ApiError, no_such_path
from simulator.apiserver.store import WINDOW, Store
from simulator.apiserver.tokens import Tokens, key_at, read_static
from simulator.apiserver.tripwire import Tripwires, read_tripwire
from simulator.apiserver.watch import Watch
from simulator.controlplane.endpoint import ADMIN, Endpoint, read_tokens

BODY_LIMIT_BYTES = 3 << 20
SHUTDOWN_S = 2.0
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "gpumend")
_HEALTH = ("/healthz", "/livez", "/readyz")


class ApiServer:
    """An API server on loopback as an async context manager; `endpoint` says how to reach it.

    State, tokens and audit live in `directory` (a temporary one by default) and are found there
    again by the next server on it. `disruption_controller` keeps PDB statuses, as the real
    controller-manager does; without it they are whatever was written.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        port: int = 0,
        tokens: Path | None = None,
        audit: Path | None = None,
        window: int = WINDOW,
        disruption_controller: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="gpumend-api-")
        self.directory = directory or Path(self._temporary.name if self._temporary else "")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._port = port
        self._tokens_file = tokens or _own_tokens(self.directory / "tokens.csv")
        self._audit_file = audit or self.directory / "audit.log"
        self._now = now
        self.store = Store(self.directory / "journal", window)
        key = key_at(self.directory / "service-account.key")
        self._tokens = Tokens(self.store, read_static(self._tokens_file), key, now)
        self._rbac = Rbac(self.store)
        self._audit = Audit(self._audit_file)
        self._api = Api(self.store, self._tokens, now, Fence(self.store).admit)
        self.faults = Faults()
        self.tripwires = Tripwires()
        self._watches: set[asyncio.Task[None]] = set()
        self._disruption = Disruption(self.store, now) if disruption_controller else None
        self._controller: asyncio.Task[None] | None = None
        self._runner: web.ServerRunner | None = None
        self._seed()

    @property
    def endpoint(self) -> Endpoint:
        """How to reach the server; the port is known once it runs."""
        url = f"http://127.0.0.1:{self._port}"
        return Endpoint(url, None, read_tokens(self._tokens_file), self._audit_file)

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, request_factory=_request, handler_cancellation=True)
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        if self._disruption:
            self._controller = asyncio.create_task(self._disruption.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._controller:
            self._controller.cancel()
            await asyncio.gather(self._controller, return_exceptions=True)
        self.close_watches()
        if self._runner:
            await self._runner.cleanup()
        self.store.close()
        self._audit.close()
        if self._temporary:
            self._temporary.cleanup()

    def close_watches(self) -> None:
        """Break every watch, as a lost connection would."""
        for task in list(self._watches):
            task.cancel()

    def compact(self) -> None:
        """Forget all history."""
        self.store.compact()

    def _seed(self) -> None:
        for name in NAMESPACES:
            kind = self.store.kinds.named("namespaces")
            if self.store.get(kind, "", name) is None:
                call = Call(User(ADMIN, groups=(MASTERS,)), "create", kind)
                self._api.registry.create(call, {"metadata": {"name": name}})

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            user = self._tokens.user(request.headers.get("Authorization"))
            return await self._route(request, user)
        except ApiError as error:
            return _failure(error)

    async def _route(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        path = request.path
        if path.startswith("/sim/"):
            return await self._simulation(request, user)
        if len(path.strip("/").split("/")) < (4 if path.startswith("/apis") else 3):
            return self._other(user, path)
        call = self._call(request, user)
        entry = Entry(call, request.raw_path, self._now(), request.remote or "")
        entry.agent = request.headers.get("User-Agent", "")
        return await self._object(request, call, entry)

    def _other(self, user: User, path: str) -> web.Response:
        self._rbac.check_path(user, path)
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
        fault = self.faults.take(call.verb, request.path)
        if fault and fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if call.verb == "watch":
            self._rbac.check(call)
            return await self._watch(request, call)
        body = await _body(request)
        tripwire = self.tripwires.take(call, request.path, body)
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
            raw = tables.table(call, raw, self._now())
        return _json(code, raw)

    def _answer(
        self, request: web.BaseRequest, call: Call, body: bytes, fault: Fault | None
    ) -> tuple[int, bytes, ApiError | None]:
        try:
            if fault and fault.code:
                raise fault.error()
            self._rbac.check(call)
            content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
            return *self._api.do(call, content_type, body), None
        except ApiError as error:
            return error.code, to_json(error.status()), error

    def _log(self, entry: Entry, call: Call, body: bytes, answer: tuple[int, bytes]) -> None:
        if call.verb not in LOGGED:
            return
        if body and (call.verb == "create" or answer[0] >= 400 or b"\n" in body):
            _describe(entry, body)
        else:
            entry.request = body
        self._audit.write(entry, *answer, self._now())

    async def _watch(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        watch = Watch(self.store, call)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        task: Any = asyncio.current_task()
        self._watches.add(task)
        try:
            async for lines in watch.frames():
                await response.write(lines)
        finally:
            self._watches.discard(task)
        return response

    async def _simulation(self, request: web.BaseRequest, user: User) -> web.Response:
        if MASTERS not in user.groups:
            raise ApiError(403, "Forbidden", f'User "{user.name}" may not make trouble')
        match request.method, request.path:
            case "POST", "/sim/faults":
                self.faults.order(read_fault(parse(await request.read())))
            case "DELETE", "/sim/faults":
                self.faults.clear()
            case "POST", "/sim/tripwires":
                tripwire = read_tripwire(parse(await request.read()))
                return _json(200, to_json(await self.tripwires.lay(tripwire)))
            case "POST", "/sim/release":
                self.tripwires.release()
            case "POST", "/sim/compact":
                self.compact()
            case "POST", "/sim/close-watches":
                self.close_watches()
            case _:
                raise no_such_path()
        return _json(200, b"{}")


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


def _request(*arguments: Any) -> web.BaseRequest:
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


def _own_tokens(path: Path) -> Path:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f'{secrets.token_hex(16)},{ADMIN},{ADMIN},"{MASTERS}"\n')
    return path
