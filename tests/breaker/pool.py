"""A pool of nodes whose breakers are asked as a watcher asks them, without the watcher.

One ConfigMap with versions, a clock that is set by hand, and any number of leaders at once.
"""

from dataclasses import replace
from datetime import timedelta

from fleet.errors import Conflict, NotFound, Transient
from fleet.fault import FaultName
from intake.breaker import Breaker, Callers
from intake.journal import Journal
from intake.member import Member
from intake.settings import Settings
from intake.surroundings import Surroundings
from tests.intake.cases import NODE, NOW, PlainRules, a_node, a_report

OLD = NOW - timedelta(days=90)
SCOPE = "pool/x"


class Records:
    """The API server, as far as one ConfigMap goes."""

    def __init__(self):
        self.data: dict[str, str] | None = None
        self.version = 0
        self.writes = 0

    async def get(self, path):
        if self.data is None:
            raise NotFound(404, "NotFound", path)
        return self._manifest()

    async def create(self, path, body):
        if self.data is not None:
            raise Conflict(409, "AlreadyExists", path)
        self.data = {}
        return self._change(body["data"])

    async def patch(self, path, body, kind):
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict", path)
        return self._change(body["data"])

    def person(self, **data):
        self._change({key.replace("_", "."): value for key, value in data.items()})

    def _change(self, data):
        after = {**(self.data or {}), **data}
        self.data = {key: value for key, value in after.items() if value is not None}
        self.version += 1
        self.writes += 1
        return self._manifest()

    def _manifest(self):
        return {"metadata": {"resourceVersion": str(self.version)}, "data": dict(self.data or {})}


class HandClock:
    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def monotonic(self):
        return 0.0

    async def sleep(self, seconds):
        self.at += timedelta(seconds=seconds)


class Pool:
    """`well`, `waits` (sick and free) or `held`, by name."""

    def __init__(self, size, leaders=1, terms=None, settings=None):
        self.records, self.clock, self.storms = Records(), HandClock(), []
        self.nobody_listens = False
        self.state = {f"n{number}": "well" for number in range(size)}
        self.born = dict.fromkeys(self.state, OLD)
        self.faults = dict.fromkeys(self.state, FaultName.GPU_LOST)
        self.holds: list[tuple[str, str]] = []
        rules = PlainRules(breaker=terms) if terms else PlainRules()
        self.terms = rules.breaker
        callers = Callers(lambda _: None, lambda ward, muster: "driver 1", lambda: None)
        self.leaders = [
            Breaker(
                Surroundings(
                    self.records,  # type: ignore[arg-type] # only what a breaker calls
                    None,  # type: ignore[arg-type] # incidents have no part in this
                    rules,
                    "c",
                    (),
                    settings or Settings(),
                    self.clock,
                    lambda: 0.5,
                    Journal(),
                    announce=self._announce,
                ),
                callers,
            )
            for _ in range(leaders)
        ]
        for name in self.state:
            self.become(name, "well")

    @property
    def sick(self):
        return sum(state != "well" for state in self.state.values())

    @property
    def record(self):
        return self.records.data or {}

    def phase_now(self):
        found = self.leaders[0].circuits.get("pool.x")
        return found.phase if found else "closed"

    def become(self, name, state):
        self.state[name] = state
        sick = state != "well"
        member = Member(
            SCOPE,
            sick=sick,
            waits=state == "waits",
            serves=state != "held",
            fault=self.faults[name] if sick else "",
            rank=(0, NOW, name) if state == "waits" else None,
            born=self.born[name],
        )
        for leader in self.leaders:
            leader.note(name, member)

    def why_not(self, name, leader=0):
        node = a_node(identity=replace(NODE, name=name))
        return self.leaders[leader].gate(node, a_report())

    def admit(self):
        """Hold whom the gates let through, and note how the breaker stood."""
        for leader in range(len(self.leaders)):
            for name in [each for each, state in self.state.items() if state == "waits"]:
                if not self.why_not(name, leader):
                    self.holds.append((name, self.phase_now()))
                    self.become(name, "held")

    async def go_round(self, leader=0):
        await self.leaders[leader].look()

    async def _announce(self, storm):
        if self.nobody_listens:
            raise Transient("the receiver is away")
        self.storms.append(storm)
