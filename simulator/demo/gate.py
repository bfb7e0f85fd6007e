"""Stands before the provider where somebody is to be killed at a call to it, and holds the call."""

import asyncio
import json
from typing import Self

import aiohttp
from aiohttp import web

HEADERS = ("Authorization", "Content-Type")


class Gate:
    """Passes every request on; the first that asks for `change` is held before or after its effect.

    `caught` is set when it is held, `released` lets it go. A request whose client is gone meanwhile
    is dropped where it had no effect yet.
    """

    def __init__(self, target: str, change: str, after: bool) -> None:
        """`target` is the provider's address."""
        self._target = target
        self._change = change
        self._after = after
        self._runner: web.AppRunner | None = None
        self.caught = asyncio.Event()
        self.released = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(self._target)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.released.set()
        if self._runner:
            await self._runner.cleanup()
        await self._session.close()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        held = self._holds(request, body)
        if held and not self._after:
            await self._hold()
            if request.transport is None or request.transport.is_closing():
                return web.Response(status=499)
        headers = {each: request.headers[each] for each in HEADERS if each in request.headers}
        asked = self._session.request(request.method, request.path_qs, data=body, headers=headers)
        async with asked as answer:
            said = await answer.read()
            status, kind = answer.status, answer.content_type
        if held and self._after:
            await self._hold()
        return web.Response(status=status, body=said, content_type=kind)

    def _holds(self, request: web.Request, body: bytes) -> bool:
        if request.method != "PUT" or self.caught.is_set():
            return False
        return bool(json.loads(body).get("change") == self._change)

    async def _hold(self) -> None:
        self.caught.set()
        await self.released.wait()
