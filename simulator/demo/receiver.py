"""Where notifications go: a webhook that writes down what people are told, a JSON object a line."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from aiohttp import web

PATH = "/notices"


class Receiver:
    """Takes notices on loopback, an async context manager; `url` says where."""

    def __init__(self, journal: Path) -> None:
        """`journal` is where they are written down."""
        self._journal = journal
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post(PATH, self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        said = {"at": datetime.now(UTC).isoformat(), **json.loads(await request.text())}
        with self._journal.open("a") as journal:
            journal.write(json.dumps(said) + "\n")
        return web.json_response({})
