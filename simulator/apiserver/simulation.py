"""The paths under `/sim/`: trouble on order, for system:masters only.

`POST /sim/faults`, `DELETE /sim/faults`: `injection.py`. `POST /sim/tripwires`,
`POST /sim/release`: `tripwire.py`. `POST /sim/compact` forgets all history,
`POST /sim/close-watches` breaks every watch.
"""

import asyncio
from typing import Any

from simulator.apiserver.api import parse
from simulator.apiserver.call import User
from simulator.apiserver.injection import Faults, read_fault
from simulator.apiserver.rbac import MASTERS
from simulator.apiserver.status import ApiError, no_such_path
from simulator.apiserver.store import Store
from simulator.apiserver.tripwire import Tripwires, read_tripwire


class Simulation:
    """What is ordered now, and the watches that may be broken."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.faults = Faults()
        self.tripwires = Tripwires()
        self.watches: set[asyncio.Task[None]] = set()

    async def do(self, user: User, method: str, path: str, body: bytes) -> dict[str, Any]:
        """Do what a request under `/sim/` asks for; returns the body of the answer."""
        if MASTERS not in user.groups:
            raise ApiError(403, "Forbidden", f'User "{user.name}" may not make trouble')
        match method, path:
            case "POST", "/sim/faults":
                self.faults.order(read_fault(parse(body)))
            case "DELETE", "/sim/faults":
                self.faults.clear()
            case "POST", "/sim/tripwires":
                return await self.tripwires.lay(read_tripwire(parse(body)))
            case "POST", "/sim/release":
                self.tripwires.release()
            case "POST", "/sim/compact":
                self._store.compact()
            case "POST", "/sim/close-watches":
                self.close_watches()
            case _:
                raise no_such_path()
        return {}

    def close_watches(self) -> None:
        """Break every watch, as a lost connection would."""
        for task in list(self.watches):
            task.cancel()
