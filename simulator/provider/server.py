"""The four requests over HTTP, and the operations that go on behind them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from simulator.provider.hands import Failure, Hands, PlayedMachines
from simulator.provider.records import Record, Records
from simulator.provider.trouble import Fault, Faults, read_fault

CHANGES = ("restart", "stop", "start", "power-cycle", "launch", "terminate")
SHUTDOWN_S = 0.1
"""For answers under way; what is silent on order would never come."""
ID_LIMIT = 120
FAULT = web.RequestKey("fault", Fault)


class ProviderServer:
    """A provider on loopback as an async context manager; `url` says where.

    What it knows lies in `directory` and is found there again by the next server on it, which also
    goes on with what was running. `token` is asked for where it is not empty; `seconds` is what a
    change takes.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        changes: Iterable[str] = CHANGES,
        token: str = "",
        seconds: float = 0.0,
        hands: Hands | None = None,
    ) -> None:
        self.records = Records(directory)
        self.machines = PlayedMachines(self.records)
        self.faults = Faults()
        self.changes = tuple(changes)
        self._port = port
        self._token = token
        self._seconds = seconds
        self._hands = hands or self.machines
        self._running: dict[str, asyncio.Task[None]] = {}
        self._runner: web.AppRunner | None = None
        self.url = ""

    def use(self, hands: Hands) -> None:
        """Act on machines by these hands from now on."""
        self._hands = hands

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/v1/abilities", self._abilities)
        app.router.add_get("/v1/machine", self._machine)
        app.router.add_put("/v1/operations/{id}", self._begin)
        app.router.add_get("/v1/operations/{id}", self._operation)
        app.router.add_post("/sim/faults", self._order)
        app.router.add_delete("/sim/faults", self._clear)
        self._runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        for operation in self.records.operations():
            if operation["state"] == "running":
                self._go_on(operation)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        if self._runner:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Who may ask, and the trouble that was ordered for it."""
        if request.path.startswith("/sim/"):
            return await handler(request)
        if self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
            return _problem(401, "unauthorized", "the bearer token is not the one that is expected")
        fault = self.faults.take(request.method, request.path)
        request[FAULT] = fault
        await asyncio.sleep(fault.delay_s)
        if fault.code:
            return _problem(fault.code, "ordered", "trouble on order")
        answer = await handler(request)
        if fault.lost and request.transport:
            request.transport.abort()
        return answer

    async def _abilities(self, _: web.Request) -> web.Response:
        return web.json_response({"changes": list(self.changes)})

    async def _machine(self, request: web.Request) -> web.Response:
        node = request.query.get("node", "")
        if not node:
            return _problem(400, "no-node", "name the node")
        return web.json_response({"power": await self._hands.power(node)})

    async def _operation(self, request: web.Request) -> web.Response:
        found = self.records.operation(request.match_info["id"])
        if found is None:
            return _problem(404, "no-such-operation", "nothing was ever begun under this id")
        return web.json_response(found)

    async def _begin(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        try:
            body = json.loads(await request.text())
            change, machine = body["change"], body["machine"]
            machine = {**machine, "node": machine["node"]}
        except (ValueError, KeyError, TypeError) as problem:
            return _problem(400, "unreadable", f"not a change of a machine: {problem}")
        if len(name) > ID_LIMIT:
            return _problem(400, "long-id", f"an id has at most {ID_LIMIT} characters")
        return self._begun(name, change, machine, request[FAULT])

    def _begun(self, name: str, change: str, machine: Record, fault: Fault) -> web.Response:
        """No await from the look to the record: two requests at once begin one operation."""
        found = self.records.operation(name)
        if found and (found["change"], found["machine"]) != (change, machine):
            return _problem(409, "id-in-use", f"{name} is {found['change']} of another machine")
        if found:
            return web.json_response(found)
        if change not in self.changes:
            return _problem(422, "cannot", f"this provider cannot {change}")
        operation: Record = {
            "id": name,
            "change": change,
            "machine": machine,
            "state": "running",
            "detail": f"{change} of {machine['node']} is under way",
        }
        self.records.write_operation(operation)
        self._go_on(operation, fault.fail)
        return web.json_response(operation, status=202)

    def _go_on(self, operation: Record, fail: str = "") -> None:
        task = asyncio.create_task(self._carry_out(operation, fail))
        self._running[operation["id"]] = task
        task.add_done_callback(lambda _: self._running.pop(operation["id"], None))

    async def _carry_out(self, operation: Record, fail: str) -> None:
        await asyncio.sleep(self._seconds)
        try:
            if fail:
                raise Failure(fail, f"{operation['change']} failed: {fail}")
            successor = await self._hands.change(operation)
        except Failure as problem:
            ended: dict[str, Any] = {
                "state": "failed",
                "reason": problem.reason,
                "detail": problem.detail,
            }
        else:
            ended = {"state": "done", "detail": f"{operation['change']} is done"}
            ended |= {"successor": successor} if successor else {}
        self.records.write_operation({**operation, **ended})

    async def _order(self, request: web.Request) -> web.Response:
        try:
            self.faults.order(read_fault(json.loads(await request.text())))
        except ValueError as problem:
            return _problem(400, "no-such-fault", str(problem))
        return web.json_response({})

    async def _clear(self, _: web.Request) -> web.Response:
        self.faults.clear()
        return web.json_response({})


def _problem(status: int, reason: str, detail: str) -> web.Response:
    return web.json_response({"reason": reason, "detail": detail}, status=status)
