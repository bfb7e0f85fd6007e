"""The ways to reboot a machine: from inside, by its provider, by its power.

Each asks once for one operation and can be found again by it. That the machine has booted is not
theirs to say: only a boot id proves that, see `reboot.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from activities.clock import Clock
from activities.means import by_provider
from activities.node_step import step_request
from activities.operations import Operations, Silent
from activities.out_of_service import OutOfService
from activities.pinned_pod import NoReport, PinnedPods, Trouble
from fleet.errors import NotFound, Refused
from fleet.machine import Change, MachineAddress, Operation, OperationState, Power
from fleet.names import node_path
from fleet.ports import Kubernetes
from fleet.request import StepRequest
from fleet.step import Means, NodeStepResult

INSIDE_LIMIT = timedelta(minutes=10)
"""For shutting down and coming up to a new boot id; large GPU servers take minutes to POST."""
PROVIDER_LIMIT = timedelta(minutes=12)
"""The same, and what a cloud takes to stop and start a machine."""
POWER_LIMIT = timedelta(minutes=10)


class Asked(StrEnum):
    """What became of asking: it is under way, surely not, nobody was there, or nobody knows."""

    UNDER_WAY = "under-way"
    NOT_DONE = "not-done"
    SILENT = "silent"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a means says of its own ask. SILENT: not begun either, and nobody who says more."""

    asked: Asked
    detail: str = ""

    @property
    def surely_not(self) -> bool:
        """Whether nothing is under way by it."""
        return self.asked in (Asked.NOT_DONE, Asked.SILENT)


class WayToReboot(Protocol):
    """One way to reboot a machine; asking twice for the same operation asks once."""

    name: str
    means: Means
    limit: timedelta

    async def there(self) -> bool:
        """Whether it can be asked at all; True where nobody says."""
        ...

    async def begun(self, request: StepRequest) -> bool:
        """Whether this operation was asked for before; raises Silent where nobody says."""
        ...

    async def ask(self, request: StepRequest, until: datetime, acted: Callable[[], None]) -> Answer:
        """Ask; `acted` is called once it can no longer be taken back."""
        ...


class FromInside:
    """The machine's own `systemctl reboot`, from a Pod on the node, which dies with it."""

    name = "from inside"
    means = Means.INSIDE

    def __init__(self, pods: PinnedPods, limit: timedelta = INSIDE_LIMIT) -> None:
        self._pods = pods
        self.limit = limit

    async def there(self) -> bool:
        """Always: a node that does not answer is asked by other ways."""
        return True

    async def begun(self, request: StepRequest) -> bool:
        """Whether the operation's Pod is there."""
        return await self._pods.begun(request.operation)

    async def ask(self, request: StepRequest, until: datetime, acted: Callable[[], None]) -> Answer:
        """Run the Pod; that its end is never seen is what a good reboot looks like."""
        del until  # the Pod ends by the request's deadline
        report = await self._pods.run(step_request(request), request.node.name, asked=acted)
        if isinstance(report, NoReport):
            sure = report.trouble is Trouble.NEVER_STARTED
            return Answer(Asked.NOT_DONE if sure else Asked.UNSURE, report.detail)
        done = report.result is NodeStepResult.DONE
        return Answer(Asked.UNDER_WAY if done else Asked.NOT_DONE, report.reason or report.result)


class _Outside:
    """What the ways from outside share: ids, the machine's address, and a provider's silence."""

    means: Means
    changes: tuple[Change, ...]

    def __init__(self, kubernetes: Kubernetes, operations: Operations, limit: timedelta) -> None:
        self._kubernetes = kubernetes
        self._operations = operations
        self.limit = limit

    async def there(self) -> bool:
        """Whether the provider can do it; True where it does not say."""
        try:
            return self.means in by_provider(await self._operations.abilities())
        except Silent:
            return True

    async def begun(self, request: StepRequest) -> bool:
        """Whether the provider knows an operation of this request."""
        return await self._begun(request) is not None

    async def ask(self, request: StepRequest, until: datetime, acted: Callable[[], None]) -> Answer:
        """Have the provider do it; asked again, it goes on where it was."""
        begun = False

        def began() -> None:
            nonlocal begun
            begun = True
            acted()

        try:
            machine = await self._address(request)
            if machine is None:
                return Answer(Asked.NOT_DONE, "the Node is gone, and with it the machine's address")
            return await self._ask(request, machine, until, began)
        except Silent as problem:
            asked = Asked.UNSURE if begun or problem.unsure else Asked.SILENT
            return Answer(asked, f"the provider does not answer: {problem}")
        except Refused as problem:
            return Answer(Asked.NOT_DONE, str(problem))

    async def _ask(
        self,
        request: StepRequest,
        machine: MachineAddress,
        until: datetime,
        acted: Callable[[], None],
    ) -> Answer:
        raise NotImplementedError

    async def _begun(self, request: StepRequest) -> Operation | None:
        for change in self.changes:
            found = await self._operations.find(_id(request, change))
            if found is not None:
                return found
        return None

    async def _address(self, request: StepRequest) -> MachineAddress | None:
        """By the operation that was begun, else by the Node: it may be gone while it boots."""
        begun = await self._begun(request)
        if begun:
            return begun.machine
        try:
            manifest = await self._kubernetes.get(node_path(request.node.name))
        except NotFound:
            return None
        return MachineAddress.of(manifest)

    async def _change(
        self,
        request: StepRequest,
        change: Change,
        machine: MachineAddress,
        until: datetime,
        acted: Callable[[], None],
    ) -> Operation:
        begun = await self._operations.begin(_id(request, change), change, machine, until)
        acted()
        return await self._operations.ended(begun, until)


class ByProvider(_Outside):
    """The provider's restart or, where it has none, a stop and a start in two calls."""

    name = "by the provider"
    means = Means.PROVIDER
    changes = (Change.RESTART, Change.STOP, Change.START)

    def __init__(
        self,
        kubernetes: Kubernetes,
        operations: Operations,
        now: Clock,
        limit: timedelta = PROVIDER_LIMIT,
        clean_up: OutOfService | None = None,
    ) -> None:
        super().__init__(kubernetes, operations, limit)
        self._clean_up = clean_up or OutOfService(kubernetes, operations, now)

    async def _ask(
        self,
        request: StepRequest,
        machine: MachineAddress,
        until: datetime,
        acted: Callable[[], None],
    ) -> Answer:
        abilities = await self._operations.abilities()
        off = await self._operations.power(machine) is Power.OFF
        if Change.RESTART in abilities and not (off and Change.START in abilities):
            return _answer(await self._change(request, Change.RESTART, machine, until, acted))
        return await self._stop_and_start(request, machine, until, acted)

    async def _stop_and_start(
        self,
        request: StepRequest,
        machine: MachineAddress,
        until: datetime,
        acted: Callable[[], None],
    ) -> Answer:
        """A machine that was stopped is started, whatever comes between the two calls."""
        start = await self._operations.find(_id(request, Change.START))
        said = ""
        if start is None and await self._operations.power(machine) is not Power.OFF:
            stop = await self._change(request, Change.STOP, machine, until, acted)
            if stop.state is not OperationState.DONE:
                return _answer(stop)
            await self._operations.reach_power(machine, Power.OFF, until)
        try:
            if start is None:
                said = await self._clean_up.clean(request, machine)
        finally:
            acted()
            start = await self._operations.begin(
                _id(request, Change.START), Change.START, machine, request.deadline
            )
        answer = _answer(await self._operations.ended(start, until))
        return Answer(answer.asked, "; ".join(each for each in (answer.detail, said) if each))


class ByPower(_Outside):
    """The power cut and given back: for a machine that listens to nothing else."""

    name = "by its power"
    means = Means.POWER
    changes = (Change.POWER_CYCLE,)

    def __init__(
        self, kubernetes: Kubernetes, operations: Operations, limit: timedelta = POWER_LIMIT
    ) -> None:
        super().__init__(kubernetes, operations, limit)

    async def _ask(
        self,
        request: StepRequest,
        machine: MachineAddress,
        until: datetime,
        acted: Callable[[], None],
    ) -> Answer:
        return _answer(await self._change(request, Change.POWER_CYCLE, machine, until, acted))


def _answer(operation: Operation) -> Answer:
    said = f"{operation.change}: {operation.reason} {operation.detail}".rstrip()
    match operation.state:
        case OperationState.DONE:
            return Answer(Asked.UNDER_WAY, said)
        case OperationState.FAILED:
            return Answer(Asked.NOT_DONE, said)
        case OperationState.RUNNING:
            return Answer(Asked.UNSURE, f"{operation.change} still runs at the provider")


def _id(request: StepRequest, change: Change) -> str:
    """One operation a change and request: what a crash left is found again."""
    return f"{request.operation}-{change}"
