"""The ways to give a machine back for another: by deleting its NodeClaim, or by its provider.

Either can be found again by the operation. Done means gone: the machine, by whoever knows, and the
Node object.
"""

from contextlib import suppress
from typing import Protocol

from temporalio import activity

from activities.clock import Clock
from activities.conduct import Progress
from activities.endings import cancelled, ended, succeeded
from activities.look import Sight
from activities.node_claims import (
    NODE_CLAIMS,
    OPERATION_ANNOTATION,
    claim_by,
    claim_of,
    deleted_by,
)
from activities.node_watch import wait_for_node
from activities.operations import Operations, Silent
from activities.waiting import wait_until
from fleet.errors import Conflict, NotFound, Refused, Transient
from fleet.machine import Change, MachineAddress, OperationState, Power
from fleet.names import node_path
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Json, Kubernetes, PatchType
from fleet.reason import BUSY_ELSEWHERE, DEADLINE, NEEDS_APPROVAL
from fleet.request import StepRequest

REPLACE_FAILED = "replace-failed"
"""PERMANENT: the provider says that it cannot give the machine back; the detail says why."""


class WayToReplace(Protocol):
    """One way; `resume` and `begin` may be asked any number of times for one operation."""

    async def resume(self, request: StepRequest, progress: Progress) -> Outcome | None:
        """See an operation that was begun to its end; None where it never was."""
        ...

    async def begin(self, sight: Sight, request: StepRequest, progress: Progress) -> Outcome | None:
        """Begin it for a node just looked at; None where this way does not fit the node."""
        ...


class ByNodeClaim:
    """Karpenter terminates the machine of a NodeClaim that is deleted, and both objects go."""

    def __init__(self, kubernetes: Kubernetes, now: Clock) -> None:
        self._kubernetes = kubernetes
        self._now = now

    async def resume(self, request: StepRequest, progress: Progress) -> Outcome | None:
        """By our annotation on a claim that is being deleted."""
        claim = await claim_by(self._kubernetes, request.operation)
        if claim is None or "deletionTimestamp" not in claim["metadata"]:
            return None
        return await self._gone(claim, request, progress)

    async def begin(self, sight: Sight, request: StepRequest, progress: Progress) -> Outcome | None:
        """Say on the claim who deletes it, then delete this very claim."""
        claim = await claim_of(self._kubernetes, sight.manifest)
        if claim is None:
            return None
        metadata = claim["metadata"]
        if "deletionTimestamp" in metadata:
            what = f"somebody else deleted NodeClaim {metadata['name']}"
            return cancelled(BUSY_ELSEWHERE, what, sight.node)
        guards = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        ours = {"annotations": {OPERATION_ANNOTATION: request.operation}}
        if deleted_by(claim) != request.operation:
            patch: Json = {"metadata": {**guards, **ours}}
            await self._kubernetes.patch(_claim_path(claim), patch, PatchType.MERGE)
        progress.acted = True
        with suppress(NotFound, Conflict):  # the very claim is gone
            await self._kubernetes.delete(_claim_path(claim), uid=metadata["uid"])
        return await self._gone(claim, request, progress)

    async def _gone(self, claim: Json, request: StepRequest, progress: Progress) -> Outcome:
        """Wait for claim and Node to be gone; the deletion cannot be taken back."""
        name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
        progress.acted = True
        progress.say(f"Karpenter takes the machine of NodeClaim {name} back")
        claim_gone = await wait_until(
            self._kubernetes,
            NODE_CLAIMS,
            {"fieldSelector": f"metadata.name={name}"},
            lambda claims: None if any(c["metadata"]["uid"] == uid for c in claims) else True,
            until=request.deadline,
            now=self._now,
        )
        if not claim_gone:
            what = f"NodeClaim {name} is still being deleted"
            return ended(OutcomeKind.AMBIGUOUS, DEADLINE, what)
        if not await _node_gone(self._kubernetes, request, self._now):
            return ended(OutcomeKind.AMBIGUOUS, DEADLINE, "the NodeClaim is gone, the Node is not")
        return succeeded(f"NodeClaim {name} and its Node are gone")


class ByTermination:
    """The provider terminates the machine; the Node goes with it, or is deleted by its UID."""

    def __init__(self, kubernetes: Kubernetes, operations: Operations, now: Clock) -> None:
        self._kubernetes = kubernetes
        self._operations = operations
        self._now = now

    async def resume(self, request: StepRequest, progress: Progress) -> Outcome | None:
        """By the operation's id at the provider."""
        try:
            begun = await self._operations.find(_id(request))
        except Silent as problem:
            if activity.info().attempt > 1:
                raise Transient(f"whether it was begun: {problem}") from problem
            return None
        return await self._terminate(begun.machine, request, progress) if begun else None

    async def begin(self, sight: Sight, request: StepRequest, progress: Progress) -> Outcome | None:
        """Ask for the termination of the machine behind the Node."""
        machine = MachineAddress.of(sight.manifest)
        try:
            if Change.TERMINATE not in await self._operations.abilities():
                return None
            return await self._terminate(machine, request, progress)
        except Silent as problem:
            what = f"the provider does not answer: {problem}"
            if problem.unsure or progress.acted:
                return ended(OutcomeKind.AMBIGUOUS, DEADLINE, what, sight.node)
            return ended(OutcomeKind.PERMANENT, NEEDS_APPROVAL, what, sight.node)

    async def _terminate(
        self, machine: MachineAddress, request: StepRequest, progress: Progress
    ) -> Outcome:
        if await self._operations.power(machine) is not Power.GONE:
            no = await self._asked(machine, request, progress)
            if no:
                return no
        progress.say("the machine is gone; its Node goes, too")
        return await self._remove_node(request)

    async def _asked(
        self, machine: MachineAddress, request: StepRequest, progress: Progress
    ) -> Outcome | None:
        """None once the provider says that the machine is gone."""
        until = request.deadline
        try:
            begun = await self._operations.begin(_id(request), Change.TERMINATE, machine, until)
        except Refused as problem:
            return ended(OutcomeKind.PERMANENT, REPLACE_FAILED, str(problem))
        progress.acted = True
        progress.say("the provider takes the machine back")
        operation = await self._operations.ended(begun, until)
        if operation.state is OperationState.FAILED:
            what = f"{operation.reason}: {operation.detail}"
            return ended(OutcomeKind.PERMANENT, REPLACE_FAILED, what)
        power = await self._operations.reach_power(machine, Power.GONE, until)
        if power is Power.GONE:
            return None
        what = f"terminate is {operation.state}, and the machine is {power}"
        return ended(OutcomeKind.AMBIGUOUS, DEADLINE, what)

    async def _remove_node(self, request: StepRequest) -> Outcome:
        """Delete the Node by its UID once it is Ready no more: a live kubelet outranks anybody."""
        if not await _node_gone(self._kubernetes, request, self._now, or_dead=True):
            what = "the provider says that the machine is gone, and its Node is Ready"
            return ended(OutcomeKind.PERMANENT, NEEDS_APPROVAL, what)
        try:
            await self._kubernetes.delete(node_path(request.node.name), uid=request.node.uid)
        except (NotFound, Conflict):
            return succeeded("machine and Node are gone")
        return succeeded("the machine is gone, and its Node was deleted")


async def _node_gone(
    kubernetes: Kubernetes, request: StepRequest, now: Clock, *, or_dead: bool = False
) -> bool:
    """Whether the Node object of the request goes (or, with `or_dead`, stops being Ready)."""

    def judge(sight: Sight | None) -> bool | None:
        if sight is None or sight.node.identity.uid != request.node.uid:
            return True
        return True if or_dead and sight.node.ready != "True" else None

    found = await wait_for_node(kubernetes, request.node, judge, until=request.deadline, now=now)
    return found is True


def _claim_path(claim: Json) -> str:
    return f"{NODE_CLAIMS}/{claim['metadata']['name']}"


def _id(request: StepRequest) -> str:
    return f"{request.operation}-{Change.TERMINATE}"
