"""Boot the machine anew: ask one way after the other, and believe only the boot id.

Done means: the Node says another boot id and is Ready. Whether a call whose answer was lost has
happened is seen there, too, so nothing is asked twice for one operation.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ANOTHER_MACHINE, cancelled, ended, succeeded
from activities.kubelet import kubelet_silent
from activities.look import Sight, look
from activities.node_watch import wait_for_node
from activities.operations import Operations, Silent
from activities.reboot_means import Answer, Asked, WayToReboot
from fleet.errors import Transient
from fleet.fault import FaultName
from fleet.machine import MachineAddress, Power
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.reason import (
    DEADLINE,
    HOLD_REMOVED,
    MARK_REMOVED,
    NEEDS_APPROVAL,
    NO_MEANS,
    PAUSED,
    PREMISE_GONE,
    UNMANAGED,
)
from fleet.request import StepRequest
from fleet.step import Means

NOT_REBOOTED = "not-rebooted"
"""PERMANENT: every means said no, and the boot id is the old one."""
MACHINE_GONE = "machine-gone"
"""PERMANENT: the provider says that the machine never comes back."""

STOPS = (MARK_REMOVED, HOLD_REMOVED, UNMANAGED, PAUSED, PREMISE_GONE)
"""Reasons against a further way. A Node that is gone or claimed meanwhile may be our own doing."""

GLANCE = timedelta(seconds=10)
"""The last look at the node when time is up, however late it is."""


class RebootActivities:
    """The activity `reboot`."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        ways: Sequence[WayToReboot],
        operations: Operations,
        now: Clock = utc_now,
    ) -> None:
        """`ways` in the order in which they are tried."""
        self._kubernetes = kubernetes
        self._ways = tuple(ways)
        self._operations = operations
        self._now = now

    @activity.defn(name="reboot")
    async def reboot(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: another boot id (in the outcome) and Ready. PERMANENT: it did not happen.

        AMBIGUOUS: it was asked for, and the node has not come back by the deadline. PERMANENT
        `needs-approval`: it does not answer, and nobody says what its machine does.
        """
        return await conduct(lambda progress: self._reboot(request, progress))

    async def _reboot(self, request: StepRequest, progress: Progress) -> Outcome:
        begun = [n for n, way in enumerate(self._ways) if await self._begun(way, request)]
        sight = None if begun else await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight
        ways = await self._ways_of(sight) if sight else self._ways[begun[-1] :]
        if isinstance(ways, Outcome):
            return ways
        progress.acted = bool(begun)
        node, answers, no = await self._ask_in_turn(ways, request, progress, sight)
        if no and all(each.surely_not for each in answers):
            return no
        if node is None and not all(each.surely_not for each in answers):
            progress.say("waiting for the node to be Ready")
            node = await self._node(request, request.deadline, lambda n: _is_back(n, request))
        return _end(node or await self._last_seen(request), request, answers)

    async def _begun(self, way: WayToReboot, request: StepRequest) -> bool:
        """Whether an earlier try asked this way; a first try has no earlier one to ask about."""
        if activity.info().attempt == 1:
            return False
        try:
            return await way.begun(request)
        except Silent as problem:
            raise Transient(f"whether it was begun: {problem}") from problem

    async def _ways_of(self, sight: Sight) -> tuple[WayToReboot, ...] | Outcome:
        """The ways that fit the node as it is now, or why none may be gone."""
        there = tuple([way for way in self._ways if await way.there()])
        if not await kubelet_silent(self._kubernetes, sight.node, self._now()):
            return there or ended(OutcomeKind.PERMANENT, NO_MEANS, "no means to reboot", sight.node)
        outside = tuple(way for way in there if way.means is not Means.INSIDE)
        return await self._unwitnessed(sight, outside) or outside

    async def _unwitnessed(self, sight: Sight, outside: Sequence[WayToReboot]) -> Outcome | None:
        """A node that does not answer is only touched on a second word, the provider's."""
        name = sight.node.identity.name
        if not outside:
            what = f"{name} does not answer, and nobody is configured to restart it from outside"
            return ended(OutcomeKind.PERMANENT, NO_MEANS, what, sight.node)
        power = await self._operations.power(MachineAddress.of(sight.manifest))
        if power in (Power.ON, Power.OFF):
            return None
        if power is Power.GONE:
            what = f"the provider says that the machine of {name} is gone"
            return ended(OutcomeKind.PERMANENT, MACHINE_GONE, what, sight.node)
        what = f"{name} does not answer, and the provider does not say what its machine does:"
        remedy = "see to it yourself that it is off or rebooted, then resume"
        return ended(OutcomeKind.PERMANENT, NEEDS_APPROVAL, f"{what} {remedy}", sight.node)

    async def _ask_in_turn(
        self,
        ways: Sequence[WayToReboot],
        request: StepRequest,
        progress: Progress,
        sight: Sight | None,
    ) -> tuple[NodeState | None, tuple[Answer, ...], Outcome | None]:
        """Ask one way after the other until the node is back; the last has all the time left.

        Returns the node if it is back (or another), what was answered, and why the rest was not
        asked where something spoke against it.
        """
        answers: list[Answer] = []
        for way in ways:
            if answers and await self._booted_meanwhile(request):
                break
            no = await self._against(request) if answers else None
            if no:
                return None, tuple(answers), no
            last = way is ways[-1]
            until = request.deadline if last else min(self._now() + way.limit, request.deadline)
            progress.say(f"rebooting {way.name}")
            node, answer = await self._by(way, request, until, progress, sight)
            answers.append(answer)
            if node:
                return node, tuple(answers), None
            sight = None  # it is minutes old
        return None, tuple(answers), None

    async def _against(self, request: StepRequest) -> Outcome | None:
        """Why no further way may be asked. Each is harm of its own, and minutes have gone by.

        A silent node was never drained: one that answers again may run jobs.
        """
        sight = await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return sight if sight.reason in STOPS else None
        silent = any(each.name is FaultName.HOST_UNREACHABLE for each in request.faults)
        if silent and not await kubelet_silent(self._kubernetes, sight.node, self._now()):
            return cancelled(PREMISE_GONE, f"{request.node.name} answers again", sight.node)
        return None

    async def _booted_meanwhile(self, request: StepRequest) -> bool:
        """A last look before the next way: the one before may have been late, not in vain."""
        seen = await self._last_seen(request)
        return seen is not None and (_is_another(seen, request) or _has_booted(seen, request))

    async def _by(
        self,
        way: WayToReboot,
        request: StepRequest,
        until: datetime,
        progress: Progress,
        sight: Sight | None,
    ) -> tuple[NodeState | None, Answer]:
        """Ask and watch at once: whoever is asked may not live to answer."""

        def acted() -> None:
            progress.acted = True

        ask = asyncio.create_task(way.ask(request, until, acted))
        back = asyncio.create_task(
            self._node(request, until, lambda n: _is_back(n, request), sight)
        )
        try:
            await asyncio.wait((ask, back), return_when=asyncio.FIRST_COMPLETED)
            answer = ask.result() if ask.done() else Answer(Asked.UNSURE, "no answer yet")
            if answer.surely_not and not back.done():
                return None, answer
            return await back, answer
        finally:
            await _stop(ask, back)

    async def _node(
        self,
        request: StepRequest,
        until: datetime,
        judge: Callable[[NodeState], bool],
        start: Sight | None = None,
    ) -> NodeState | None:
        """The node once `judge` says yes, or once it is another machine; None when time is up."""

        def look_at(sight: Sight | None) -> NodeState | None:
            if sight is None:
                return None  # some clouds delete the Node of a machine that is off
            found = _is_another(sight.node, request) or judge(sight.node)
            return sight.node if found else None

        return await wait_for_node(
            self._kubernetes, request.node, look_at, until=until, now=self._now, start=start
        )

    async def _last_seen(self, request: StepRequest) -> NodeState | None:
        return await self._node(request, self._now() + GLANCE, lambda _: True)


def _end(node: NodeState | None, request: StepRequest, answers: Sequence[Answer]) -> Outcome:
    """What may be concluded from the node as it was last seen, and from what the means said."""
    said = "; ".join(each.detail for each in answers if each.detail)
    if node is None:
        return ended(OutcomeKind.AMBIGUOUS, DEADLINE, f"the Node is gone; {said}")
    if _is_another(node, request):
        what = f"{request.node.name} is machine {node.identity.machine} now"
        return ended(OutcomeKind.SUPERSEDED, ANOTHER_MACHINE, what, node)
    if _is_back(node, request):
        return succeeded("another boot id, and Ready", node)
    if _has_booted(node, request):
        return ended(OutcomeKind.PERMANENT, DEADLINE, "it booted and did not become Ready", node)
    if all(each.surely_not for each in answers):
        silent = node.ready != "True" and any(each.asked is Asked.SILENT for each in answers)
        reason = NEEDS_APPROVAL if silent else NOT_REBOOTED
        return ended(OutcomeKind.PERMANENT, reason, said, node)
    if node.ready == "True":
        return ended(OutcomeKind.PERMANENT, DEADLINE, f"it was asked to and did not; {said}", node)
    return ended(OutcomeKind.AMBIGUOUS, DEADLINE, f"it went down and is not back; {said}", node)


def _has_booted(node: NodeState, request: StepRequest) -> bool:
    """Another boot id; an empty one is a Node that is just being written, not a boot."""
    return bool(node.boot_id) and node.boot_id != request.boot_id


def _is_back(node: NodeState, request: StepRequest) -> bool:
    return _has_booted(node, request) and node.ready == "True"


def _is_another(node: NodeState, request: StepRequest) -> bool:
    return node.identity.machine != request.node.machine


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
