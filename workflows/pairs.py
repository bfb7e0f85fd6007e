"""The workflow of trials in pairs: a few idle nodes at a time add up two by two, until it is known
which of them is odd, if one is.

Id `pairs/<cluster>-<time>`, by the schedule `pairs/<cluster>`; no two run side by side. A child of
its own keeps each node, and has its lease and its taint: whatever ends this run ends them, too, in
order. A node is in one pair at a time, and nobody is blamed for one (`policies/pairwise.py`).
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.kept_nodes import KeptNodes
from workflows.sweep import LOOK_LIMIT, MOST_FOUND, Swept
from workflows.timing import BUDGET_RETRY, PAIR_START, PROOF, PROOF_WAIT, SLACK

with workflow.unsafe.imports_passed_through():
    from fleet import names
    from fleet.outcome import Outcome, OutcomeKind
    from fleet.proving import OPERATIONS, PairRequest, ProofEnd, ProveTask, TrialWord
    from fleet.reason import EXHAUSTED
    from policies.flocks import LEAST, Flock, Flocks
    from policies.pairs_terms import Pairs
    from policies.pairwise import MOST_PEERS, judge
    from policies.prove_terms import ProveTerms
    from policies.trial import Tried, courses, next_round, tried, words

CARD_LINES = 40
"""Lines of the card that say how pairs went, the latest."""


@dataclass(slots=True)
class Course:
    """How far the trials of this run are, and why no more is begun, once that is so."""

    until: datetime
    ends: Counter[str] = field(default_factory=Counter)
    because: str = ""
    due: int = 0
    lines: list[str] = field(default_factory=list)

    def goes_on(self, now: datetime) -> bool:
        """Whether another trial may begin."""
        if not self.because and now >= self.until:
            self.because = "its time is over"
        if not self.because and self.ends[ProofEnd.FOUND.value] >= MOST_FOUND:
            self.because = f"{MOST_FOUND} nodes were odd: look at what they share"
        return not self.because


@workflow.defn(name=names.PAIRS_WORKFLOW)
class TryInPairs:
    """The trials of one look."""

    @workflow.init
    def __init__(self, cluster: str, terms: ProveTerms) -> None:
        self._terms = terms
        self._kept = KeptNodes(terms)
        self._asked = 0
        self._head = ""
        self._course = Course(workflow.now())

    @workflow.run
    async def run(self, cluster: str, terms: ProveTerms) -> Swept:
        """Look for idle nodes, try them with each other, and say how it went."""
        pairs = terms.proving.pairs
        if pairs is None or terms.dry_run:
            return Swept({}, "the policy tries nothing in pairs")
        course = self._course = Course(workflow.now() + pairs.look)
        try:
            found = await self._look(cluster, pairs)
            for flock in found.flocks:
                await self._all_of(flock, pairs)
        except asyncio.CancelledError:  # said once, by a person; what we did is undone first
            course.because = "cancelled"
            await self._let_go()
        because = course.because or "nothing is left"
        self._show(f"ended: {because}")
        return Swept(dict(sorted(course.ends.items())), because, course.due)

    @workflow.signal(name=names.SIGNAL_READY, description="A node is kept for the trial")
    def ready(self, node: str) -> None:
        """Its lease is there, its taint is on, and no work came."""
        self._kept.is_ready(node)

    async def _look(self, cluster: str, pairs: Pairs) -> Flocks:
        found: Flocks = await workflow.execute_activity(
            "pair-candidates",
            args=[cluster, pairs, self._terms.scopes],
            result_type=Flocks,
            start_to_close_timeout=LOOK_LIMIT,
            schedule_to_close_timeout=pairs.look,
            retry_policy=BUDGET_RETRY,
            summary="idle nodes that were not tried with others for long",
        )
        self._course.due = found.due
        idle = sum(len(each.tasks) for each in found.flocks)
        self._head = (
            f"{found.due} nodes are due, {found.looked_at} were looked at, {idle} of them and their"
            f" partners idle, {found.room} at once"
        )
        self._show()
        return found

    async def _all_of(self, flock: Flock, pairs: Pairs) -> None:
        """One trial after the other, as long as there are enough nodes."""
        left = deque(flock.tasks)
        while len(left) > 1 and self._course.goes_on(workflow.now()):
            took = len(left)
            await self._kept.take(left, pairs.at_once)
            self._course.because = self._course.because or self._kept.refused
            await self._trial(flock, pairs)
            await self._let_go()
            if len(left) == took:
                return

    async def _trial(self, flock: Flock, pairs: Pairs) -> None:
        """Round after round among those that are there, and a word to each."""
        nodes = sorted(self._kept.there)
        trial: list[Tried] = []
        for _ in range(2 * len(nodes) + MOST_PEERS):
            wanted = next_round(nodes, trial, pairs.slow_below)
            if not wanted:
                break
            trial += await asyncio.gather(*(self._pair(each, pairs) for each in wanted))
        judgement = judge(nodes, courses(trial, pairs.slow_below))
        told = words(judgement, trial, pairs.slow_below, flock.one_fabric)
        if len(nodes) < LEAST and judgement.open:
            self._say(f"{flock.named}: {len(nodes)} idle nodes, nobody else: none can be blamed")
        for one, other in judgement.links:
            self._say(f"between {one} and {other}: both do well with others")
        await self._kept.tell({each: told.get(each, _ALONE) for each in nodes})

    async def _pair(self, pair: tuple[str, str], pairs: Pairs) -> Tried:
        """One pair to its outcome; what did not come to an end says nothing."""
        sides = self._kept.there[pair[0]], self._kept.there[pair[1]]
        request = self._request(sides, pairs)
        whole = request.deadline - request.since + SLACK
        timing = PROOF["pair"]
        try:
            outcome: Outcome = await workflow.execute_activity(
                "pair",
                args=[request],
                result_type=Outcome,
                start_to_close_timeout=whole,
                schedule_to_close_timeout=whole + PROOF_WAIT,
                heartbeat_timeout=timing.heartbeat,
                retry_policy=timing.retry,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"{pair[0]} with {pair[1]}",
            )
        except ActivityError as failure:
            outcome = Outcome(OutcomeKind.TRANSIENT, EXHAUSTED, str(failure.cause))
        found = tried(pair, outcome)
        why = found.code or outcome.detail
        self._say(f"{found.first} with {found.second}: {found.course.value} ({why})")
        return found

    def _request(self, sides: tuple[ProveTask, ProveTask], pairs: Pairs) -> PairRequest:
        self._asked += 1
        run = workflow.info().run_id.replace("-", "")[:8]
        now = workflow.now()
        return PairRequest(
            operation=f"{OPERATIONS}pair-{run}-{self._asked}",
            sides=sides,
            since=now,
            deadline=now + PAIR_START + pairs.add_up,
            port=pairs.port,
            seconds=pairs.add_up.total_seconds(),
        )

    async def _let_go(self) -> None:
        """Wait until no node is kept any more; who was told nothing serves again."""
        for node, closing in (await self._kept.let_go()).items():
            self._course.ends[closing.end.value] += 1
            self._say(f"{node}: **{closing.end.value}** {'; '.join(closing.reasons)}")

    def _say(self, line: str) -> None:
        self._course.lines.append(line)
        del self._course.lines[:-CARD_LINES]
        self._show()

    def _show(self, *more: str) -> None:
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self._course.ends.items()))
        lines = [self._head, f"so far: {ends or 'none'}", *self._course.lines, *more]
        workflow.set_current_details("\n".join(f"- {each}" for each in filter(None, lines)))


_ALONE = TrialWord(ProofEnd.UNKNOWN, "nobody else was idle")
