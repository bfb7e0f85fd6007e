"""Boot the machine anew: ask by one means after the other, and believe only the boot id.

Done means: the Node says another boot id and is Ready. Whether a call whose answer was lost has
happened is seen there, too, so nothing is asked twice for one operation.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import ANOTHER_MACHINE, ended, succeeded
from activities.look import Sight, look
from activities.node_step import step_request
from activities.node_watch import wait_for_node
from activities.pinned_pod import NoReport, PinnedPods, Trouble
from fleet.node import NodeState
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.reason import DEADLINE
from fleet.request import StepRequest
from fleet.step import NodeStepResult

NOT_REBOOTED = "not-rebooted"
"""PERMANENT: every means said no, and the boot id is the old one."""

INSIDE_LIMIT = timedelta(minutes=10)
"""For shutting down and coming up to a new boot id; large GPU servers take minutes to POST."""

GLANCE = timedelta(seconds=10)
"""The last look at the node when time is up, however late it is."""


class Asked(StrEnum):
    """What became of asking: it is under way, surely not, or nobody knows."""

    UNDER_WAY = "under-way"
    NOT_DONE = "not-done"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a means says of its own ask."""

    asked: Asked
    detail: str = ""


class Means(Protocol):
    """One way to reboot a machine; asking twice for the same operation asks once."""

    name: str
    limit: timedelta

    async def begun(self, request: StepRequest) -> bool:
        """Whether this operation was asked for before."""
        ...

    async def ask(self, request: StepRequest, acted: Callable[[], None]) -> Answer:
        """Ask; `acted` is called once it can no longer be taken back."""
        ...


class FromInside:
    """The machine's own `systemctl reboot`, from a Pod on the node, which dies with it."""

    name = "from inside"

    def __init__(self, pods: PinnedPods, limit: timedelta = INSIDE_LIMIT) -> None:
        self._pods = pods
        self.limit = limit

    async def begun(self, request: StepRequest) -> bool:
        """Whether the operation's Pod is there."""
        return await self._pods.exists(request.operation)

    async def ask(self, request: StepRequest, acted: Callable[[], None]) -> Answer:
        """Run the Pod; that its end is never seen is what a good reboot looks like."""
        report = await self._pods.run(step_request(request), request.node.name, asked=acted)
        if isinstance(report, NoReport):
            sure = report.trouble is Trouble.NEVER_STARTED
            return Answer(Asked.NOT_DONE if sure else Asked.UNSURE, report.detail)
        done = report.result is NodeStepResult.DONE
        return Answer(Asked.UNDER_WAY if done else Asked.NOT_DONE, report.reason or report.result)


class RebootActivities:
    """The activity `reboot`."""

    def __init__(
        self, kubernetes: Kubernetes, means: Sequence[Means], now: Clock = utc_now
    ) -> None:
        """`means` in the order in which they are tried."""
        self._kubernetes = kubernetes
        self._means = tuple(means)
        self._now = now

    @activity.defn(name="reboot")
    async def reboot(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: another boot id (in the outcome) and Ready. PERMANENT: it did not happen.

        AMBIGUOUS: it was asked for, and the node has not come back by the deadline.
        """
        return await conduct(lambda progress: self._reboot(request, progress))

    async def _reboot(self, request: StepRequest, progress: Progress) -> Outcome:
        begun = [await means.begun(request) for means in self._means]
        if not any(begun):
            sight = await look(self._kubernetes, request, self._now, premise=True)
            if isinstance(sight, Outcome):
                return sight
        progress.acted = any(begun)
        answers = await self._ask_in_turn(request, progress)
        progress.say("waiting for the node to be Ready")
        node = None
        if any(each.asked is not Asked.NOT_DONE for each in answers):
            node = await self._node(request, request.deadline, lambda n: _is_back(n, request))
        return _end(node or await self._last_seen(request), request, answers)

    async def _ask_in_turn(self, request: StepRequest, progress: Progress) -> tuple[Answer, ...]:
        """Ask by each means until the boot id changes; the answers of those that were asked."""
        answers: list[Answer] = []
        for means in self._means:
            until = min(self._now() + means.limit, request.deadline)
            progress.say(f"rebooting {means.name}")
            booted, answer = await self._by(means, request, until, progress)
            answers.append(answer)
            if booted:
                break
        return tuple(answers)

    async def _by(
        self, means: Means, request: StepRequest, until: datetime, progress: Progress
    ) -> tuple[bool, Answer]:
        """Ask and watch at once: whoever is asked may not live to answer."""

        def acted() -> None:
            progress.acted = True

        ask = asyncio.create_task(means.ask(request, acted))
        boot = asyncio.create_task(self._node(request, until, lambda n: _has_booted(n, request)))
        try:
            await asyncio.wait((ask, boot), return_when=asyncio.FIRST_COMPLETED)
            answer = ask.result() if ask.done() else Answer(Asked.UNSURE, "no answer yet")
            if answer.asked is Asked.NOT_DONE and not boot.done():
                return False, answer
            return await boot is not None, answer
        finally:
            await _stop(ask, boot)

    async def _node(
        self,
        request: StepRequest,
        until: datetime,
        judge: Callable[[NodeState], bool],
    ) -> NodeState | None:
        """The node once `judge` says yes, or once it is another machine; None when time is up."""

        def look_at(sight: Sight | None) -> NodeState | None:
            if sight is None:
                return None  # some clouds delete the Node of a machine that is off
            found = _is_another(sight.node, request) or judge(sight.node)
            return sight.node if found else None

        return await wait_for_node(
            self._kubernetes, request.node, look_at, until=until, now=self._now
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
    if all(each.asked is Asked.NOT_DONE for each in answers):
        return ended(OutcomeKind.PERMANENT, NOT_REBOOTED, said, node)
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
