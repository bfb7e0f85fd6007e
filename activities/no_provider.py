"""The port `Provider` where nobody is configured to run machines for us: it can do nothing."""

from fleet.errors import Refused
from fleet.machine import Change, MachineAddress, Operation, Power


class NoProvider:
    """Knows nothing, and refuses every change."""

    async def abilities(self) -> frozenset[Change]:
        """Nothing."""
        return frozenset()

    async def power(self, machine: MachineAddress) -> Power:
        """UNKNOWN, always."""
        del machine
        return Power.UNKNOWN

    async def begin(self, operation: str, change: Change, machine: MachineAddress) -> Operation:
        """Raise Refused, which says how to configure one."""
        del operation, machine
        raise Refused(501, "NoProvider", f"nobody to {change}: GPUMEND_PROVIDER_URL is not set")

    async def operation(self, operation: str) -> Operation | None:
        """None: nothing was ever begun."""
        del operation
        return None
