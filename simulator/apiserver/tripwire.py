"""Holds a chosen request before or after it takes effect, so that somebody can be killed there.

`POST /sim/tripwires` with the fields of Tripwire lays one and is answered when a request has run
into it, with `user`, `extra`, `verb`, `path` of that; `POST /sim/release` lets go what is held. For
system:masters only. A request whose client is gone while it is held before its effect is dropped;
after it, only the answer is.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from simulator.apiserver.call import Call
from simulator.apiserver.status import bad_request

LONGEST_HOLD_S = 120.0


@dataclass(slots=True)
class Tripwire:
    """Holds the first request that matches; `user`, `verb`, `path`, `body` are regular expressions.

    `after`: the request takes effect before it is held.
    """

    user: str = ".*"
    verb: str = ".*"
    path: str = ""
    body: str = ""
    after: bool = False
    caught: dict[str, Any] = field(default_factory=dict, init=False)
    tripped: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    released: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def matches(self, call: Call, path: str, body: str) -> bool:
        """Whether this request is the one, and the first."""
        return (
            not self.tripped.is_set()
            and re.fullmatch(self.user, call.user.name) is not None
            and re.fullmatch(self.verb, call.verb) is not None
            and re.search(self.path, path) is not None
            and re.search(self.body, body) is not None
        )

    async def hold(self, call: Call, path: str) -> None:
        """Say who is here, and keep him until he is let go or gone."""
        user = call.user
        self.caught = {"user": user.name, "extra": user.extra, "verb": call.verb, "path": path}
        self.tripped.set()
        await asyncio.wait_for(self.released.wait(), LONGEST_HOLD_S)


class Tripwires:
    """The tripwires that are laid."""

    def __init__(self) -> None:
        self._laid: list[Tripwire] = []

    async def lay(self, tripwire: Tripwire) -> dict[str, Any]:
        """Lay one, and wait until a request has run into it; returns whose it is."""
        self._laid.append(tripwire)
        try:
            await tripwire.tripped.wait()
        except asyncio.CancelledError:
            self._laid.remove(tripwire)
            raise
        return tripwire.caught

    def release(self) -> None:
        """Let go what is held."""
        for tripwire in self._laid:
            if tripwire.tripped.is_set():
                tripwire.released.set()

    def take(self, call: Call, path: str, body: bytes) -> Tripwire | None:
        """The tripwire that this request runs into."""
        if not self._laid:
            return None
        text = body.decode(errors="replace")
        return next((each for each in self._laid if each.matches(call, path, text)), None)


def read_tripwire(body: Any) -> Tripwire:
    """A Tripwire from the JSON of a request."""
    try:
        return Tripwire(**body)
    except TypeError as error:
        raise bad_request(f"no such tripwire: {error}") from error
