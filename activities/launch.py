"""Have a successor Ready before the old machine goes: asked for once an incident.

The ids are the incident's and not the step's, so that a launch whose end nobody heard is never
followed by a second machine. What failed for sure may be asked for again.
"""

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ended, succeeded
from activities.look import Sight, look
from activities.node_watch import wait_for_node
from activities.offers import missing
from activities.operations import Operations, Silent
from fleet.errors import Refused, Transient
from fleet.machine import Change, MachineAddress, Operation, OperationState
from fleet.node import NodeIdentity
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.reason import DEADLINE, NEEDS_APPROVAL, NO_MEANS
from fleet.request import StepRequest

LAUNCH_FAILED = "launch-failed"
"""PERMANENT: the provider says why, `capacity` above all."""
SUCCESSOR_SICK = "successor-sick"
"""PERMANENT: the new node is held itself; another would be a guess."""

TRIES = 3
"""Launches that may fail in one incident; then a person looks at why."""


class LaunchActivities:
    """The activity `launch`."""

    def __init__(
        self, kubernetes: Kubernetes, operations: Operations, now: Clock = utc_now
    ) -> None:
        self._kubernetes = kubernetes
        self._operations = operations
        self._now = now

    @activity.defn(name="launch")
    async def launch(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: the successor's node is Ready, offers as much, and is not held.

        PERMANENT: `no-means`, `launch-failed`, `successor-sick`. AMBIGUOUS: not yet, by the
        deadline.
        """
        return await conduct(lambda progress: self._launch(request, progress))

    async def _launch(self, request: StepRequest, progress: Progress) -> Outcome:
        sight = await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight
        try:
            operation = await self._begun(sight, request)
        except Refused as problem:
            return ended(OutcomeKind.PERMANENT, LAUNCH_FAILED, str(problem), sight.node)
        except Silent as problem:
            return _silent(problem, sight)
        if isinstance(operation, Outcome):
            return operation
        progress.acted = True
        progress.say("the provider launches a successor")
        operation = await self._operations.ended(operation, request.deadline)
        return _failed(operation, sight) or await self._joined(operation, sight, request, progress)

    async def _begun(self, sight: Sight, request: StepRequest) -> Operation | Outcome:
        """The launch of this incident that did not fail, begun if there is none."""
        if Change.LAUNCH not in await self._operations.abilities():
            what = "the provider launches no machines"
            return ended(OutcomeKind.PERMANENT, NO_MEANS, what, sight.node)
        machine = MachineAddress.of(sight.manifest)
        for number in range(1, TRIES + 1):
            name = f"{request.incident}-{Change.LAUNCH}-{number}"
            found = await self._operations.find(name)
            if found is None or found.state is not OperationState.FAILED:
                return found or await self._operations.begin(
                    name, Change.LAUNCH, machine, request.deadline
                )
        what = f"{TRIES} launches failed: {found.reason if found else ''}"
        return ended(OutcomeKind.PERMANENT, LAUNCH_FAILED, what, sight.node)

    async def _joined(
        self, operation: Operation, old: Sight, request: StepRequest, progress: Progress
    ) -> Outcome:
        """Wait for the new node to be Ready and to offer what the old one did."""
        progress.say(f"waiting for {operation.successor} to be Ready")
        offered = old.node.mark.offered if old.node.mark else ()

        def judge(sight: Sight | None) -> Outcome | None:
            if sight is None or sight.node.ready != "True" or sight.node.deleting:
                return None
            if sight.node.hold or sight.node.mark:
                what = f"{operation.successor} is held itself"
                return ended(OutcomeKind.PERMANENT, SUCCESSOR_SICK, what, old.node)
            if sight.node.unschedulable or missing(offered, sight.node.allocatable):
                return None
            return succeeded(f"{operation.successor} is Ready", old.node)

        found = await wait_for_node(
            self._kubernetes,
            NodeIdentity(request.node.cluster, operation.successor, "", ""),
            judge,
            until=request.deadline,
            now=self._now,
        )
        what = f"{operation.successor} is not Ready yet"
        return found or ended(OutcomeKind.AMBIGUOUS, DEADLINE, what, old.node)


def _failed(operation: Operation, sight: Sight) -> Outcome | None:
    """Why there is no successor to wait for, or None."""
    match operation.state:
        case OperationState.FAILED:
            what = f"{operation.reason}: {operation.detail}"
            return ended(OutcomeKind.PERMANENT, LAUNCH_FAILED, what, sight.node)
        case OperationState.RUNNING:
            what = "the provider still launches a successor"
            return ended(OutcomeKind.AMBIGUOUS, DEADLINE, what, sight.node)
        case OperationState.DONE:
            if operation.successor:
                return None
            what = "the provider says that the launch is done and names no node"
            return ended(OutcomeKind.PERMANENT, LAUNCH_FAILED, what, sight.node)


def _silent(problem: Silent, sight: Sight) -> Outcome:
    """Not begun for sure, or perhaps: then the same id tells, later."""
    if problem.unsure:
        raise Transient(str(problem)) from problem
    what = f"the provider does not answer: {problem}"
    return ended(OutcomeKind.PERMANENT, NEEDS_APPROVAL, what, sight.node)
