"""What the engine is told: starts of pending marks, reports of marked nodes, facts about nodes.

Holds come first: nothing is sent while a hold is waiting. What is sent is composed when its turn
comes, from the node as it stands then. Temporal being away costs nothing but time: it is said once,
and what could not be sent is sent later; marks in the cluster outlive this process.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.errors import Ambiguous, Refused, Transient
from fleet.fault import Advice, Fault
from fleet.mark import MarkState
from fleet.opening import Opening
from fleet.report import Report
from intake.admission import Rank
from intake.settings import Settings
from intake.surroundings import Surroundings
from intake.work_queue import WorkQueue


@dataclass(frozen=True, slots=True)
class Parcel:
    """A node's Report, and the opening that it belongs to. One of a rehearsal `starts` it."""

    opening: Opening
    report: Report
    starts: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """What the engine heard last of a node."""

    parcel: Parcel
    at: datetime


@dataclass(frozen=True, slots=True)
class NodeGone:
    """The Node object with this UID was deleted (UID empty: nobody knows it any more)."""

    workflow_id: str
    uid: str


@dataclass(frozen=True, slots=True)
class HoldRemoved:
    """A person took the hold (and, perhaps, the mark) away."""

    workflow_id: str
    node: str
    uid: str
    mark_removed: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """A machine came back without a mark: if its incident is open, it is held again."""

    workflow_id: str
    node: str


Notice = NodeGone | HoldRemoved | Returned

_NODE = "node "
_DRY = "dry "
"""Begin the keys of nodes and of their rehearsals; a notice is its own key."""


@dataclass(slots=True)
class DeliveryCounts:
    """What was delivered so far, for metrics."""

    starts: int = 0
    reports: int = 0
    notices: int = 0
    failures: int = 0


def worse(before: Report, after: Report) -> bool:
    """Whether a fault came, or one now asks for more than it did."""
    known = {each.key: _weight(each) for each in before.faults}
    return any(_weight(each) > known.get(each.key, -1) for each in after.faults)


def due(sent: Sent | None, parcel: Parcel, now: datetime, settings: Settings) -> bool:
    """Whether the engine has to hear of this node now.

    A pending mark is repeated until it is taken up, more seldom as it ages; another one only when
    something changed, and then at most once a minute, unless it got worse or people opted the node
    out.
    """
    if sent is None:
        return True
    before, after = sent.parcel.opening.mark, parcel.opening.mark
    if before.uid != after.uid or before.id != after.id:
        return True
    if worse(sent.parcel.report, parcel.report):
        return True
    if sent.parcel.report.managed and not parcel.report.managed:
        return True
    if after.state is MarkState.PENDING:
        again = before.state is not MarkState.PENDING
        return again or now - sent.at >= _patience(after.opened, now, settings)
    changed = parcel.report.fingerprint != sent.parcel.report.fingerprint
    return changed and now - sent.at >= settings.report_at_most_every


def _patience(opened: datetime, now: datetime, settings: Settings) -> timedelta:
    """Longer for a mark that is old: nobody takes it up, and each repeat is one more signal."""
    longest = max(settings.repeat_pending_after, settings.compare_every)
    return min(longest, max(settings.repeat_pending_after, (now - opened) / 10))


def _weight(fault: Fault) -> int:
    return list(Advice).index(fault.advice)


@dataclass(frozen=True, slots=True)
class Callers:
    """Whom delivery asks and tells: what a node's parcel is now, or its rehearsal's, and what came
    of it."""

    compose: Callable[[str], Parcel | None]
    rehearse: Callable[[str], Parcel | None]
    runless: Callable[[str], None]
    rehearsed: Callable[[str, Parcel, bool, datetime], None]
    holds_true: Callable[[Notice], bool]
    told: Callable[[Notice, bool], None]


class Delivery:
    """Sends what `offer` and `notify` put in, bounded and paced."""

    def __init__(self, given: Surroundings, callers: Callers, holds_idle: asyncio.Event) -> None:
        self.counts = DeliveryCounts()
        self.sent: dict[str, Sent] = {}
        self._incidents = given.incidents
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._backoff = given.backoff()
        self._callers = callers
        self._holds_idle = holds_idle
        self._queue = WorkQueue(given.settings.deliveries_at_once)
        self._notices: dict[str, Notice] = {}
        self._resume_at = 0.0

    @property
    def waiting(self) -> int:
        """What is not delivered yet."""
        return len(self._queue)

    def offer(self, node: str, rank: Rank) -> None:
        """This marked node may have news for the engine."""
        self._queue.put(_NODE + node, rank)

    def offer_rehearsal(self, node: str, rank: Rank) -> None:
        """This node, or its rehearsal, may have news for the engine."""
        self._queue.put(_DRY + node, rank)

    def notify(self, notice: Notice, now: datetime) -> None:
        """A fact that no later Report repeats; kept until it is delivered."""
        key = str(notice)
        self._notices[key] = notice
        self._queue.put(key, (0, now, key))

    def forget(self, node: str) -> None:
        """The Node object or its run is gone: whoever comes next has heard nothing."""
        self.sent.pop(node, None)

    async def run(self) -> None:
        """Deliver until cancelled."""
        await self._queue.run(self._deliver)

    async def _deliver(self, key: str, rank: Rank) -> None:
        await self._wait_for_our_turn()
        try:
            await self._send(key)
        except (Transient, Ambiguous) as problem:
            self._away(problem)
            self._queue.put(key, rank)
        except Refused as problem:
            self._refused(key, rank, problem)
        else:
            self._journal.over(f"refused {key}", "temporal-accepts-again")
            self._backoff.reset()
            self._journal.over("temporal", "temporal-is-back", waiting=self.waiting)
        await self._clock.sleep(self._pace)

    @property
    def _pace(self) -> float:
        """Each of the workers rests after a call, so that all together keep to the rate."""
        return self._settings.deliveries_at_once / self._settings.deliveries_per_second

    async def _wait_for_our_turn(self) -> None:
        while (wait := self._resume_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)
        await self._holds_idle.wait()

    async def _send(self, key: str) -> None:
        if key.startswith(_NODE):
            await self._send_news(key.removeprefix(_NODE))
        elif key.startswith(_DRY):
            await self._rehearse(key.removeprefix(_DRY))
        elif notice := self._notices.get(key):
            if self._callers.holds_true(notice):
                self._callers.told(notice, await self._tell(notice))
                self.counts.notices += 1
            self._notices.pop(key, None)

    async def _send_news(self, node: str) -> None:
        parcel = self._callers.compose(node)
        if parcel and due(self.sent.get(node), parcel, self._clock.now(), self._settings):
            await self._send_parcel(node, parcel)

    async def _rehearse(self, node: str) -> None:
        """A fault starts a rehearsal or is heard by the open one; its end is only heard."""
        parcel = self._callers.rehearse(node)
        if parcel is None:
            return
        is_open = True
        if parcel.starts:
            await self._incidents.start(parcel.opening, parcel.report)
            self.counts.starts += 1
        else:
            is_open = await self._incidents.report(parcel.opening.workflow_id, parcel.report)
            self.counts.reports += 1
        self._journal.say("rehearse", node=node, incident=parcel.opening.mark.id)
        self._callers.rehearsed(node, parcel, is_open, self._clock.now())

    async def _send_parcel(self, node: str, parcel: Parcel) -> None:
        opening, report = parcel.opening, parcel.report
        if opening.mark.state is MarkState.PENDING:
            await self._incidents.start(opening, report)
            self.counts.starts += 1
            self._journal.say("start", node=node, incident=opening.mark.id)
        else:
            if not await self._incidents.report(opening.workflow_id, report):
                self._callers.runless(node)
                return
            self.counts.reports += 1
            self._journal.say("report", node=node, incident=opening.mark.id)
        self.sent[node] = Sent(parcel, self._clock.now())

    async def _tell(self, notice: Notice) -> bool:
        match notice:
            case NodeGone(workflow_id, uid):
                answer = await self._incidents.node_gone(workflow_id, uid)
            case HoldRemoved(workflow_id, _, uid, mark_removed):
                answer = await self._incidents.hold_removed(workflow_id, uid, mark_removed)
            case Returned(workflow_id):
                answer = await self._incidents.is_open(workflow_id)
        self._journal.say(_words(notice), incident=notice.workflow_id, open=str(answer).lower())
        return answer

    def _refused(self, key: str, rank: Rank, problem: Refused) -> None:
        """Said, and asked again: others must be held whatever becomes of this one.

        A node's news is offered again by the next sweep; a notice is kept here.
        """
        self.counts.failures += 1
        self._journal.trouble(
            f"refused {key}", "temporal-refuses", about=key, because=problem, then="asked-again"
        )
        if not key.startswith((_NODE, _DRY)):
            self._resume_at = self._clock.monotonic() + self._backoff.next()
            self._queue.put(key, rank)

    def _away(self, problem: Transient | Ambiguous) -> None:
        self.counts.failures += 1
        now = self._clock.monotonic()
        if now >= self._resume_at:
            hint = problem.retry_after if isinstance(problem, Transient) else None
            self._resume_at = now + self._backoff.next(hint)
        self._journal.trouble("temporal", "temporal-is-away", then="nodes are held meanwhile")


def _words(notice: Notice) -> str:
    match notice:
        case NodeGone():
            return "tell-node-gone"
        case HoldRemoved():
            return "tell-hold-removed"
        case Returned():
            return "ask-if-incident-open"
