"""What a change does to a machine. Here the machines are only states in a directory; a demo gives
hands of its own that kill and start the processes which play them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from simulator.provider.records import Records

POWER_AFTER = {
    "restart": "on",
    "stop": "off",
    "start": "on",
    "power-cycle": "on",
    "terminate": "gone",
}


class Failure(Exception):
    """The change cannot be made: a short reason, and a sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Hands(Protocol):
    """Acts on machines. Must bear to be asked again for an operation that was cut short."""

    async def change(self, operation: Mapping[str, Any]) -> str:
        """Make the change; returns the successor's node name for launch, else ''.

        Raises Failure.
        """
        ...

    async def power(self, node: str) -> str:
        """on, off, gone or unknown."""
        ...


class PlayedMachines:
    """Machines that are a file each: power, and how often they have booted."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def add(self, node: str, power: str = "on") -> None:
        """A machine that is known from now on."""
        self._records.write_machine(node, {"power": power, "boots": 1})

    async def power(self, node: str) -> str:
        """Unknown for what was never added."""
        machine = self._records.machine(node)
        return str(machine["power"]) if machine else "unknown"

    async def change(self, operation: Mapping[str, Any]) -> str:
        """Change the state; what is gone cannot be changed but terminated again."""
        node, change = operation["machine"]["node"], operation["change"]
        if change == "launch":
            successor = f"{node}-next"
            self.add(successor)
            return successor
        machine = self._records.machine(node)
        if machine is None:
            raise Failure("no-such-machine", f"there is no machine behind {node}")
        if machine["power"] == "gone" and change != "terminate":
            raise Failure("gone", f"the machine behind {node} was given back")
        boots = machine["boots"] + (change in ("restart", "start", "power-cycle"))
        self._records.write_machine(node, {"power": POWER_AFTER[change], "boots": boots})
        return ""
