"""Operations at the provider: begun once, found again by their id, and followed to their end.

Whatever answer is lost, the operation is looked for by its id before it is asked for again.
"""

import asyncio
from datetime import datetime, timedelta

from activities.clock import Clock
from fleet.errors import Ambiguous, Refused, TooManyRequests, Transient
from fleet.machine import Change, MachineAddress, Operation, OperationState, Power
from fleet.ports import Provider

POLL = timedelta(seconds=5)
"""Between looks at an operation: it takes minutes, and nobody tells us when it ends."""

PATIENCE = timedelta(minutes=2)
"""How long a provider may be silent before a change is given up that it has not heard of."""

UNANSWERED = (Transient, Ambiguous, TooManyRequests)


class Silent(Exception):
    """The provider did not answer for as long as we wait."""

    def __init__(self, what: str, *, unsure: bool = False) -> None:
        """`unsure`: a change was sent and may have begun."""
        super().__init__(what)
        self.unsure = unsure


class Operations:
    """Changes of machines under ids. Raises Silent, and Refused where the provider says no."""

    def __init__(self, provider: Provider, now: Clock, *, poll: timedelta = POLL) -> None:
        self.provider = provider
        self._now = now
        self._poll = poll

    async def abilities(self) -> frozenset[Change]:
        """What the provider can do; Silent where it does not say."""
        try:
            return await self.provider.abilities()
        except UNANSWERED as problem:
            raise Silent(str(problem)) from problem

    async def power(self, machine: MachineAddress) -> Power:
        """What the provider says of a machine; UNKNOWN where it says nothing."""
        try:
            return await self.provider.power(machine)
        except (*UNANSWERED, Refused):
            return Power.UNKNOWN

    async def find(self, operation: str) -> Operation | None:
        """The operation as it stands, None if it was never begun; Silent where nobody says."""
        try:
            return await self.provider.operation(operation)
        except UNANSWERED as problem:
            raise Silent(str(problem)) from problem

    async def begin(
        self, operation: str, change: Change, machine: MachineAddress, until: datetime
    ) -> Operation:
        """Begin it, or find it begun; silence is borne until then, for PATIENCE at most."""
        until = min(until, self._now() + PATIENCE)
        unsure = False
        while True:
            try:
                found = await self.provider.operation(operation)
                return found or await self.provider.begin(operation, change, machine)
            except UNANSWERED as problem:
                unsure = unsure or isinstance(problem, Ambiguous)
                if self._now() + self._poll >= until:
                    raise Silent(str(problem), unsure=unsure) from problem
            await asyncio.sleep(self._poll.total_seconds())

    async def ended(self, operation: Operation, until: datetime) -> Operation:
        """The operation once it runs no more, or as it was last seen when time is up."""
        while operation.state is OperationState.RUNNING and self._now() < until:
            await asyncio.sleep(self._poll.total_seconds())
            try:
                operation = await self.provider.operation(operation.id) or operation
            except UNANSWERED:
                continue  # it is followed by looking, and looking has time until then
        return operation

    async def reach_power(self, machine: MachineAddress, wanted: Power, until: datetime) -> Power:
        """What the machine is once it is as wanted, or what it was when time was up."""
        while True:
            power = await self.power(machine)
            if power is wanted or self._now() >= until:
                return power
            await asyncio.sleep(self._poll.total_seconds())
