"""One run of the demo: set the stage, let the script play, watch the audit, judge, put away."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from policies.document import load
from policies.schema import Policy
from simulator.demo.disturbance import away, kill_at, kill_at_gate
from simulator.demo.fleet import JOB_LABEL
from simulator.demo.happenings.alarm import CONDITION
from simulator.demo.install import POOL_LABEL
from simulator.demo.narrator import Narrator
from simulator.demo.outcome import RunOutcome
from simulator.demo.play import Play, reach_of
from simulator.demo.scripts import write_scenario
from simulator.demo.settings import Settings
from simulator.demo.stage import RACK_LABEL, Stage, StageBuilder
from simulator.demo.supervisor import Supervisor
from simulator.demo.tail import AuditTail
from simulator.demo.verdict import differences, unfinished, unproven
from simulator.demo.view import View
from simulator.observer import sight
from simulator.observer.incidents import incidents
from simulator.observer.promise import Promises
from simulator.observer.rules import ALL
from simulator.observer.summary import summarize

LOOK_SECONDS = 0.2
QUIET_SECONDS = 3.0
"""After the last end the fleet is watched this long: nothing more may happen."""
AGENTS_SECONDS = 120.0
LABELS = {"rack": RACK_LABEL, "pool": POOL_LABEL}


class Run:
    """One run with its view. `finished` is called with the outcome before `keep` keeps it."""

    def __init__(
        self, settings: Settings, view: View, finished: Callable[[RunOutcome, Stage], None]
    ) -> None:
        self._settings = settings
        self._view = view
        self._finished = finished
        self._scenario = write_scenario(settings.seed, settings.nodes)
        self._narrator = Narrator()
        self._amiss: list[str] = []
        self._troubled: asyncio.Task[None] | None = None
        self._promises = Promises()

    async def run(self) -> RunOutcome:
        """Run to the end; raise NotStarted where a program does not start."""
        started = time.monotonic()
        async with self._stage() as (stage, supervisor):
            tail = AuditTail(stage.endpoint.audit, stage.journal, stage.notices)
            self._promises = promises_of(load(stage.policy.read_text(), str(stage.policy)))
            await self._agents_speak(tail)
            self._prepare_kill(stage, supervisor)
            play = asyncio.create_task(self._play(stage, supervisor))
            try:
                await self._follow(tail, play)
            finally:
                play.cancel()
                await asyncio.gather(play, return_exceptions=True)
            outcome = self._judge(tail, time.monotonic() - started)
            self._view.close()
            if not outcome.well:
                self._view.say("", f"{supervisor.tails()}\n{_kept(stage)}")
            self._finished(outcome, stage)
            if self._settings.keep:
                await asyncio.Event().wait()
        return outcome

    @asynccontextmanager
    async def _stage(self) -> AsyncIterator[tuple[Stage, Supervisor]]:
        directory = Path(tempfile.mkdtemp(prefix="gpumend-demo-"))
        try:
            async with AsyncExitStack() as stack:
                supervisor = Supervisor(directory / "logs", self._tell)
                await stack.enter_async_context(supervisor)
                told = supervisor, stack, self._tell
                builder = StageBuilder(self._settings, self._scenario, directory, *told)
                yield await builder.build(), supervisor
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _tell(self, sentence: str) -> None:
        self._view.say("", sentence)

    def _prepare_kill(self, stage: Stage, supervisor: Supervisor) -> None:
        if self._settings.kill:
            kill, gate = self._settings.kill, stage.gate
            killing = (
                kill_at_gate(kill, gate, supervisor, self._tell)
                if gate
                else kill_at(kill, stage, supervisor, self._tell)
            )
            self._troubled = asyncio.create_task(killing)

    async def _agents_speak(self, tail: AuditTail) -> None:
        """Until every agent has said that its node is well: before that nothing can be missed."""
        deadline = time.monotonic() + AGENTS_SECONDS
        while not self._all_well():
            if time.monotonic() > deadline:
                self._amiss.append(f"agents of {', '.join(self._silent())} said nothing")
                return
            await asyncio.sleep(LOOK_SECONDS)
            self._narrate(tail, aloud=False)
        count = len(self._scenario.nodes)
        self._tell(f"{count} nodes are up, and their agents say that they are well")

    def _all_well(self) -> bool:
        return not self._silent()

    def _silent(self) -> list[str]:
        nodes = self._narrator.world.nodes
        return [
            name
            for name in self._scenario.nodes
            if name not in nodes or not any(map(_ours, sight.conditions(nodes[name])))
        ]

    async def _play(self, stage: Stage, supervisor: Supervisor) -> None:
        """Let the script play, and take away what is to be away."""
        if self._settings.without:
            absence = self._absence(supervisor)
            self._troubled = asyncio.create_task(absence)
        nodes = self._narrator.world.nodes
        reach = reach_of(stage, nodes, self._view.say, self._settings.approve_yourself)
        play = Play(self._scenario, reach)
        try:
            await play.run()
        finally:
            self._amiss += play.amiss
        if self._troubled:
            await self._troubled

    async def _absence(self, supervisor: Supervisor) -> None:
        await asyncio.sleep(self._scenario.absence)
        await away(self._settings.without, self._settings.absence, supervisor, self._tell)

    async def _follow(self, tail: AuditTail, play: asyncio.Task[None]) -> None:
        """Narrate until all has ended and stayed quiet, or time is up."""
        deadline = time.monotonic() + self._settings.limit
        quiet_since = None
        while time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
            self._narrate(tail, aloud=True)
            if play.done():
                play.result()
            if self._settings.sabotage and self._found_out(tail):
                return
            if not play.done() or self._settings.sabotage or self._open(tail):
                quiet_since = None
                continue
            quiet_since = quiet_since or time.monotonic()
            if time.monotonic() - quiet_since >= QUIET_SECONDS:
                return
        self._amiss.append(f"not over after {self._settings.limit:.0f} s")
        if self._troubled and not self._troubled.done():
            self._troubled.cancel()
            self._amiss.append("the process was never killed: nobody made that call")

    def _open(self, tail: AuditTail) -> bool:
        if unproven(self._narrator.world.nodes):
            return True
        return bool(unfinished(self._scenario, incidents(tail.writes), self._settings.unseen))

    def _found_out(self, tail: AuditTail) -> bool:
        """Whether the promise that is being broken has been seen to be broken."""
        rule = ALL[self._settings.sabotage]
        return next(rule(tail.writes, self._promises), None) is not None

    def _narrate(self, tail: AuditTail, aloud: bool) -> None:
        for write in tail.new():
            for node, sentence in self._narrator.tell(write):
                if aloud:
                    self._view.say(node, sentence)
        self._view.show(self._narrator.world.nodes)

    def _judge(self, tail: AuditTail, seconds: float) -> RunOutcome:
        tail.new()
        summary = summarize(tail.writes, self._promises)
        unscripted = differences(self._scenario, summary.incidents, self._settings.unseen)
        claims = self._scenario.claims
        unshown = [each for claim in claims for each in claim(tail.writes, self._promises)]
        amiss = (*self._amiss, *unscripted, *unshown)
        return RunOutcome(self._scenario, summary, self._promises, amiss, seconds)


def promises_of(policy: Policy) -> Promises:
    """The budgets of a policy whose budgets are counts, and what else the judge must know of it."""
    budget = {each.scope: each.max for each in policy.budgets if isinstance(each.max, int)}
    labels = {scope: label for scope, label in LABELS.items() if scope in budget}
    job = JOB_LABEL if "job" in budget else ""
    return Promises(budget, labels, job, policy.hand_offs_count_in, (CONDITION,))


def _ours(condition: str) -> bool:
    return condition.startswith(sight.OURS)


def _kept(stage: Stage) -> str:
    """Logs, audit and the pods' own logs outlive a run that failed."""
    place = Path(tempfile.mkdtemp(prefix="gpumend-failed-"))
    shutil.copytree(stage.directory / "logs", place / "logs")
    shutil.copy(stage.endpoint.audit, place / "audit.log")
    for each in (stage.journal, stage.notices):
        if each.exists():
            shutil.copy(each, place)
    for log in stage.directory.glob("machines/*/pods/*/log"):
        node, pod = log.parts[-4], log.parts[-2]
        shutil.copy(log, place / "logs" / f"{node}-{pod}.log")
    return f"its logs and its audit are kept in {place}"
