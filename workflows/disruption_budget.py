"""The disruption budget as a workflow: a ledger, one batch of asks an update, grants in batches.

Id `budget/<cluster>`, started by the first ask. It never ends; it goes on as a new run before its
limits, with its ledger. Handlers never wait, so each sees the whole ledger and needs no lock.
Asks that wait are granted by an activity that signals their incidents; a lost signal costs time
only, since who waits asks again.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.timing import BUDGET_CALL, BUDGET_RETRY

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from policies import budget
    from policies.budget import Ask, Ledger
    from policies.exchange import Answer, Batch

LOOK_EVERY = timedelta(minutes=10)
"""A lease is looked at this long after it was granted or last seen to be needed."""
GRANTS_AT_ONCE = 200
LOOKS_AT_ONCE = 50
MOST_WAITING = 4_000
"""Asks on record, so that a ledger fits into one payload of two megabytes. Others ask again."""


@workflow.defn(name=names.BUDGET_WORKFLOW)
class DisruptionBudget:
    """How many nodes of a cluster may be disrupted at once, and which."""

    @workflow.init
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._told = ledger.holders
        self._news = False

    @workflow.run
    async def run(self, ledger: Ledger) -> None:
        """Tell who was granted, look at old leases, and go on as a new run in time."""
        while not workflow.info().is_continue_as_new_suggested():
            self._show()
            await self._tell()
            await self._look()
            await self._sleep()
        assert workflow.all_handlers_finished(), "handlers here never wait"
        workflow.continue_as_new(args=[self._ledger])

    @workflow.update(name=names.UPDATE_EXCHANGE, description="Asks and give-backs, in one batch")
    def exchange(self, batch: Batch) -> Answer:
        """Put a batch on record; the answer says which asks hold a lease now."""
        now = workflow.now()
        self._ledger = budget.give(self._ledger, frozenset(batch.gives), now)
        self._ledger = budget.ask(self._ledger, self._with_room(batch.asks), now)
        holders = self._ledger.holders
        granted = tuple(each.incident for each in batch.asks if each.incident in holders)
        self._told = (self._told | frozenset(granted)) & holders
        self._news = True
        asked = [each for each in batch.asks if each.incident not in holders]
        return Answer(granted, {each.incident: self._why(each) for each in asked})

    def _why(self, ask: Ask) -> str:
        waits = any(each.incident == ask.incident for each in self._ledger.waiting)
        return budget.why(self._ledger, ask) if waits else "too many asks are waiting"

    def _with_room(self, asks: Sequence[Ask]) -> Sequence[Ask]:
        """Those that are on record already, and new ones while there is room."""
        known = frozenset(each.incident for each in self._ledger.waiting)
        new = [each for each in asks if each.incident not in known]
        room = max(0, MOST_WAITING - len(known))
        return [*(each for each in asks if each.incident in known), *new[:room]]

    @workflow.update(name=names.UPDATE_FREEZE, description="Grant nothing more")
    def freeze(self, actor: str, reason: str) -> str:
        """Stop all grants; leases that are out stay out."""
        self._ledger = budget.freeze(self._ledger, actor, reason, workflow.now())
        self._news = True
        return "frozen"

    @workflow.update(name=names.UPDATE_THAW, description="Grant again")
    def thaw(self, actor: str, reason: str) -> str:
        """Grant again, beginning with who waits longest."""
        self._ledger = budget.thaw(self._ledger, workflow.now())
        self._news = True
        return "thawed"

    @freeze.validator
    def _may_freeze(self, actor: str, reason: str) -> None:
        self._refuse_nameless(actor, reason)

    @thaw.validator
    def _may_thaw(self, actor: str, reason: str) -> None:
        self._refuse_nameless(actor, reason)

    def _refuse_nameless(self, actor: str, reason: str) -> None:
        if not actor.strip() or not reason.strip():
            raise ApplicationError("say who you are (actor) and why (reason)", type="OrderRefused")

    @workflow.query(name=names.QUERY_LEDGER, description="Leases, who waits, and a freeze")
    def ledger(self) -> Ledger:
        """The whole ledger."""
        return self._ledger

    async def _tell(self) -> None:
        """Signal who was granted a lease without asking just now."""
        untold = sorted(self._ledger.holders - self._told)[:GRANTS_AT_ONCE]
        if not untold:
            return
        self._told |= frozenset(untold)
        gone = await self._ask_activity("grant", untold, f"{len(untold)} leases granted")
        self._ledger = budget.give(self._ledger, frozenset(gone), workflow.now())

    async def _look(self) -> None:
        """Free the leases of incidents that are over; all others are looked at again later."""
        due = workflow.now() - LOOK_EVERY
        old = [each for each in budget.oldest_first(self._ledger) if each.looked <= due]
        if not old:
            return
        known = {each.ask.incident: each.ask.node for each in old[:LOOKS_AT_ONCE]}
        over = await self._ask_activity("look-at-leases", known, f"look at {len(known)} leases")
        self._ledger = budget.seen(self._ledger, frozenset(known), workflow.now())
        self._ledger = budget.give(self._ledger, frozenset(over), workflow.now())

    async def _ask_activity(self, name: str, argument: object, summary: str) -> list[str]:
        try:
            answer: list[str] = await workflow.execute_activity(
                name,
                argument,
                result_type=list[str],
                start_to_close_timeout=BUDGET_CALL,
                schedule_to_close_timeout=LOOK_EVERY,
                retry_policy=BUDGET_RETRY,
                summary=summary,
            )
        except ActivityError:
            return []  # asked again: by who waits, or at the next look
        return answer

    async def _sleep(self) -> None:
        leases = budget.oldest_first(self._ledger)
        left = None
        if leases:
            left = max(leases[0].looked + LOOK_EVERY - workflow.now(), timedelta(seconds=1))
        with suppress(TimeoutError):
            await workflow.wait_condition(self._has_news, timeout=left)
        self._news = False

    def _has_news(self) -> bool:
        """An update, or leases that a look or a full batch of grants left untold."""
        untold = bool(self._ledger.holders - self._told)
        return self._news or untold or workflow.info().is_continue_as_new_suggested()

    def _show(self) -> None:
        workflow.set_current_details(budget.in_words(self._ledger))
