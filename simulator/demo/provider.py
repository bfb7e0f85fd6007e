"""The provider of a run: the reference provider with hands that switch the machines of the demo.

`python -m simulator.demo.provider CONFIG`. What it does it writes into a journal, a JSON object a
line, which the observer reads beside the audit of the API server.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulator.hardware.power import NoPower, Power, Signal, Switch
from simulator.provider import ProviderServer
from simulator.provider.hands import Failure

CHANGES = ("restart", "launch", "terminate", "power-cycle")
READY_LINE = "ready url="
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Owned:
    """A machine that the provider runs. A `spare` one may be launched, a `hidden` one never."""

    node: str
    provider_id: str
    base: str
    spare: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """`journal` is where it says what it did."""

    directory: str
    journal: str
    port: int
    token: str
    machines: tuple[Owned, ...]


def write_provider(path: Path, config: ProviderConfig) -> None:
    """Write the file that it is started with; it holds a token."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(config)))


def read_provider(path: Path) -> ProviderConfig:
    """Read it back."""
    fields = json.loads(path.read_text())
    machines = tuple(Owned(**each) for each in fields.pop("machines"))
    return ProviderConfig(**fields, machines=machines)


class Yard:
    """Hands for the reference provider: each change is made once for an operation."""

    def __init__(self, machines: Sequence[Owned], journal: Path) -> None:
        self._machines = machines
        self._journal = journal
        self._launched: set[str] = set()

    async def power(self, node: str) -> str:
        """`on` also while it boots: the power is there."""
        owned = self._of_node(node)
        if owned is None:
            return "unknown"
        state = Switch(Path(owned.base)).state
        return "on" if state is Power.DARK else state.value

    async def change(self, operation: Mapping[str, Any]) -> str:
        """Make the change unless the journal has it; what is begun here is written down first."""
        done = self._done(operation["id"])
        if done is not None:
            return str(done["successor"])
        change, node = operation["change"], operation["machine"]["node"]
        owned = self._next_spare() if change == "launch" else self._of_node(node)
        if owned is None:
            raise Failure("capacity" if change == "launch" else "no-such-machine", f"for {node}")
        successor = owned.node if change == "launch" else ""
        self._write(operation, owned, successor)
        await _do(change, Switch(Path(owned.base)))
        return successor

    def _of_node(self, node: str) -> Owned | None:
        """The machine behind a name: one that is there before one that is gone."""
        named = [each for each in self._machines if each.node == node]
        there = [each for each in named if Switch(Path(each.base)).state is not Power.GONE]
        started = [each for each in there if not each.spare and not each.hidden]
        return next(iter([*started, *there, *named]), None)

    def _next_spare(self) -> Owned | None:
        free = [each for each in self._machines if each.spare and each.node not in self._launched]
        if free:
            self._launched.add(free[0].node)
        return free[0] if free else None

    def _done(self, operation: str) -> dict[str, Any] | None:
        if not self._journal.exists():
            return None
        lines = map(json.loads, self._journal.read_text().splitlines())
        return next((each for each in lines if each["operation"] == operation), None)

    def _write(self, operation: Mapping[str, Any], owned: Owned, successor: str) -> None:
        said = {
            "at": datetime.now(UTC).isoformat(),
            "operation": operation["id"],
            "change": operation["change"],
            "node": operation["machine"]["node"],
            "provider_id": owned.provider_id,
            "successor": successor,
        }
        with self._journal.open("a") as journal:
            journal.write(json.dumps(said) + "\n")


async def _do(change: str, switch: Switch) -> None:
    try:
        if change == "launch":
            switch.ask(Signal.START)
        elif change == "terminate":
            switch.give_back()
            while switch.state is not Power.GONE:  # noqa: ASYNC110 # the state is a file
                await asyncio.sleep(LOOK_SECONDS)
        else:
            switch.ask(Signal.CYCLE)
    except NoPower as problem:
        raise Failure("no-power", str(problem)) from problem


async def serve(config: ProviderConfig) -> None:
    """Serve until told to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    yard = Yard(config.machines, Path(config.journal))
    directory = Path(config.directory)
    server = ProviderServer(
        directory, port=config.port, changes=CHANGES, token=config.token, hands=yard
    )
    async with server:
        sys.stdout.write(f"{READY_LINE}{server.url}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(read_provider(Path(sys.argv[1]))))
