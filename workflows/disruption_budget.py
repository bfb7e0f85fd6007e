"""The disruption budget as a workflow: a ledger, one batch of asks an update, grants in batches.

Id `budget/<cluster>`, started by the first ask or the first census. It never ends; it goes on as a
new run before its limits, with its ledger. Handlers never wait, so each sees the whole ledger and
needs no lock. Asks that wait are granted by an activity that signals their incidents; a lost signal
costs time only, since who waits asks again.

Signals: `census`. Updates: `exchange`, `freeze`, `thaw`. Query: `ledger`. One timer, for the next
look at who was not heard of for long.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, TypeVar, cast

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.timing import BUDGET_CALL, BUDGET_RETRY

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.census import Census
    from fleet.order import EXAMPLE, read_said
    from policies import budget, budget_look
    from policies.budget_use import Use, stopped
    from policies.columns import by_rows
    from policies.exchange import SentAnswer, SentBatch, answer
    from policies.ledger import Ask, Ledger
    from policies.ledger_archive import Archive, pack, unpack
    from policies.ledger_card import ROWS, card
    from policies.ledger_view import UNANSWERED_AFTER, LedgerView, unanswered, view

LOOK_EVERY = timedelta(minutes=10)
"""A lease is looked at this long after it was granted or last seen to be needed."""
GRANTS_AT_ONCE = 200
LOOKS_AT_ONCE = 50
MOST_WAITING = 10_000
"""Asks on record; a run's whole ledger is packed into one payload. Others ask again."""
SHOWN_EVERY = timedelta(seconds=5)
"""A card of thousands costs some of a storm's time: not made anew with every batch or new run."""
MANY = 500

T = TypeVar("T")


@workflow.defn(name=names.BUDGET_WORKFLOW)
class DisruptionBudget:
    """How many nodes of a cluster may be disrupted at once, and which."""

    @workflow.init
    def __init__(self, archive: Archive) -> None:
        self._ledger = unpack(archive)
        self._watched = False
        self._alarmed = 0
        many = len(self._ledger.waiting) >= MANY
        self._shown = workflow.now() if many else datetime.min.replace(tzinfo=UTC)

    @workflow.run
    async def run(self, archive: Archive) -> None:
        """Tell who was granted, look at who is silent, and go on as a new run in time."""
        while not workflow.info().is_continue_as_new_suggested():
            await self._tell()
            await self._look()
            self._alarm()
            self._show_soon()
            await self._sleep()
        assert workflow.all_handlers_finished(), "handlers here never wait"
        workflow.continue_as_new(args=[pack(self._ledger)])

    @workflow.signal(name=names.SIGNAL_CENSUS, description="How the fleet stands, scope by scope")
    def census(self, census: Census) -> None:
        """Take in a census and grant what it makes room for."""
        self._become(budget.count(self._ledger, census, workflow.now()))

    @workflow.update(name=names.UPDATE_EXCHANGE, description="Asks and give-backs, in one batch")
    def exchange(self, batch: SentBatch) -> SentAnswer:
        """Put a batch on record; the answer says which asks hold a lease now."""
        now = workflow.now()
        asks = by_rows(batch.asks, repeat(now), repeat(now))
        ledger = budget.give(self._ledger, frozenset(batch.gives), now)
        ledger = budget.hand_off(ledger, by_rows(batch.hand_offs), now)
        left_out = self._without_room(ledger, asks)
        taken = [each for each in asks if each.incident not in left_out]
        ledger = budget.ask(ledger, taken, now)
        holders = ledger.holders
        self._become(budget.told(ledger, holders & {each.incident for each in taken}))
        return answer(asks, holders, self._why(asks, left_out, now))

    def _why(self, asks: Sequence[Ask], left_out: Collection[str], now: datetime) -> Sequence[str]:
        """What would stop each ask, in words."""
        halt = stopped(self._ledger, now)
        full = f"too many asks are waiting: {len(self._ledger.waiting)}"
        words = [halt] * len(asks) if halt else Use(self._ledger).whys(asks)
        if not left_out:
            return words
        pairs = zip(asks, words, strict=True)
        return [full if each.incident in left_out else text for each, text in pairs]

    def _without_room(self, ledger: Ledger, asks: Sequence[Ask]) -> Collection[str]:
        """Incidents that are not on record yet, beyond those that there is room for."""
        room = max(0, MOST_WAITING - len(ledger.waiting))
        if len(asks) <= room:
            return ()
        known = ledger.holders | {each.incident for each in ledger.waiting}
        return [each.incident for each in asks if each.incident not in known][room:]

    @workflow.update(name=names.UPDATE_FREEZE, description=f"Grant nothing more. Input: {EXAMPLE}")
    def freeze(self, *given: Any) -> str:
        """Stop all grants; leases that are out stay out."""
        said = read_said(given)
        self._become(budget.freeze(self._ledger, said.actor, said.reason, workflow.now()))
        return "frozen"

    @workflow.update(name=names.UPDATE_THAW, description=f"Grant again. Input: {EXAMPLE}")
    def thaw(self, *given: Any) -> str:
        """Grant again, beginning with who is next."""
        said = read_said(given)
        self._become(budget.thaw(self._ledger, workflow.now()))
        return f"thawed by {said.actor}"

    @freeze.validator
    def _may_freeze(self, *given: Any) -> None:
        _refuse_nameless(given)

    @thaw.validator
    def _may_thaw(self, *given: Any) -> None:
        _refuse_nameless(given)

    @workflow.query(name=names.QUERY_LEDGER, description="Scopes, leases, who waits, and a freeze")
    def ledger(self, now: datetime | None = None) -> LedgerView:
        """How the budget stands, bounded, at `now` or when something last happened."""
        return view(self._ledger, now or workflow.now())

    def _become(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._show_soon()

    async def _tell(self) -> None:
        """Signal who was granted a lease without asking just now."""
        untold = sorted(each.ask.incident for each in self._ledger.leases if not each.told)
        if not untold:
            return
        now_told = untold[:GRANTS_AT_ONCE]
        self._ledger = budget.told(self._ledger, frozenset(now_told))
        summary = f"{len(now_told)} leases granted"
        nobody: list[str] = []
        gone = await self._ask_activity("grant", now_told, summary, list[str], nobody)
        self._ledger = budget.give(self._ledger, frozenset(gone), workflow.now())

    async def _look(self) -> None:
        """Look at who was not heard of for long, and free the leases of those who are over."""
        began = workflow.now()
        known = budget_look.to_look_at(self._ledger, began - LOOK_EVERY, LOOKS_AT_ONCE)
        if not known:
            return
        summary = f"look at {len(known)} incidents"
        nothing: dict[str, str] = {}
        found = await self._ask_activity("look-at-leases", known, summary, dict[str, str], nothing)
        self._ledger = budget_look.looked(self._ledger, known, found, began, workflow.now())

    async def _ask_activity(
        self, name: str, argument: object, summary: str, answers: Any, failed: T
    ) -> T:
        try:
            answer = await workflow.execute_activity(
                name,
                argument,
                result_type=answers,
                start_to_close_timeout=BUDGET_CALL,
                schedule_to_close_timeout=LOOK_EVERY,
                retry_policy=BUDGET_RETRY,
                summary=summary,
            )
        except ActivityError:
            return failed  # asked again: by who waits, or at the next look
        return cast("T", answer)

    async def _sleep(self) -> None:
        """Until there is somebody to tell, to look at, or to raise an alarm about."""
        seen = budget_look.next_look(self._ledger)
        left = None
        if seen:
            left = max(seen + LOOK_EVERY - workflow.now(), timedelta(seconds=1))
        self._watched = seen is not None
        with suppress(TimeoutError):
            await workflow.wait_condition(
                self._has_work, timeout=left, timeout_summary="look at who was not heard of"
            )

    def _has_work(self) -> bool:
        """Leases to tell of, a first one to set the timer for, or a run that grew long."""
        ledger = self._ledger
        on_record = ledger.leases or ledger.waiting or ledger.with_people
        if on_record and not self._watched:
            return True
        untold = any(not each.told for each in ledger.leases)
        return untold or workflow.info().is_continue_as_new_suggested()

    def _alarm(self) -> None:
        """Say in the log how many wait for too long; `unanswered` of the query says it, too."""
        late = unanswered(self._ledger, workflow.now())
        if late and len(late) != self._alarmed:
            workflow.logger.warning(
                "what=asks-unanswered count=%d longer_than=%s first=%s why=%r",
                len(late),
                UNANSWERED_AFTER,
                late[0].incident,
                stopped(self._ledger, workflow.now()) or Use(self._ledger).why(late[0]),
            )
        self._alarmed = len(late)

    def _show_soon(self) -> None:
        now = workflow.now()
        if len(self._ledger.waiting) >= MANY and now < self._shown + SHOWN_EVERY:
            return
        self._shown = now
        workflow.set_current_details(card(view(self._ledger, now, ROWS)))


def _refuse_nameless(given: Sequence[object]) -> None:
    try:
        said = read_said(given)
    except ValueError as problem:
        raise ApplicationError(str(problem), type="OrderRefused") from problem
    if not said.actor or not said.reason:
        why = f"say who you are (actor) and why (reason): {EXAMPLE}"
        raise ApplicationError(why, type="OrderRefused")
