"""The server itself: its files, its socket, its start and its end."""

import asyncio
import secrets
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from aiohttp import web

from simulator.apiserver.api import Api
from simulator.apiserver.audit import Audit
from simulator.apiserver.call import Call, User
from simulator.apiserver.disruption import Disruption
from simulator.apiserver.fence import Fence
from simulator.apiserver.injection import Faults
from simulator.apiserver.rbac import MASTERS, Rbac
from simulator.apiserver.requests import Requests, request_of
from simulator.apiserver.simulation import Simulation
from simulator.apiserver.store import WINDOW, Store
from simulator.apiserver.tokens import Tokens, key_at, read_static
from simulator.apiserver.tripwire import Tripwires
from simulator.controlplane.endpoint import ADMIN, Endpoint, read_tokens

SHUTDOWN_S = 2.0
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "gpumend")


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
        self.store = Store(self.directory / "journal", window)
        self._simulation = Simulation(self.store)
        key = key_at(self.directory / "service-account.key")
        issued = Tokens(self.store, read_static(self._tokens_file), key, now)
        self._audit = Audit(self._audit_file)
        self._api = Api(self.store, issued, now, Fence(self.store).admit)
        self._requests = Requests(
            self.store, issued, Rbac(self.store), self._audit, self._api, now, self._simulation
        )
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
        server = web.Server(
            self._requests.handle, request_factory=request_of, handler_cancellation=True
        )
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

    @property
    def faults(self) -> Faults:
        """Slow, failing and lost answers on order."""
        return self._simulation.faults

    @property
    def tripwires(self) -> Tripwires:
        """Requests to be held, so that somebody can be killed there."""
        return self._simulation.tripwires

    def close_watches(self) -> None:
        """Break every watch, as a lost connection would."""
        self._simulation.close_watches()

    def compact(self) -> None:
        """Forget all history."""
        self.store.compact()

    def _seed(self) -> None:
        for name in NAMESPACES:
            kind = self.store.kinds.named("namespaces")
            if self.store.get(kind, "", name) is None:
                call = Call(User(ADMIN, groups=(MASTERS,)), "create", kind)
                self._api.registry.create(call, {"metadata": {"name": name}})


def _own_tokens(path: Path) -> Path:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f'{secrets.token_hex(16)},{ADMIN},{ADMIN},"{MASTERS}"\n')
    return path
