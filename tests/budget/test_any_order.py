"""Whatever comes in whatever order, and whenever the run goes on as the next: a model judges.

The model recomputes everything from the facts, in the dumbest way, and knows nothing of queues: it
says how many nodes of a scope are out, and whether a grant kept to what its ask allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.census import Census, ScopeCensus
from policies import budget
from policies.budget import OVERDUE
from policies.budget_look import looked, next_look, to_look_at
from policies.ledger import MOST_OVERTAKING, Ask, Claim, Lease, Ledger, WithPeople
from policies.ledger_archive import pack, unpack
from policies.ledger_view import unanswered, view

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NAMES = "abcdefgh"
SCOPES = ("cluster/c", "rack/r1", "rack/r2", "pool/p")

claims = st.dictionaries(st.sampled_from(SCOPES), st.integers(0, 3), min_size=1)
names = st.sampled_from(NAMES)
subsets = st.sets(names, max_size=4)


@st.composite
def asks(draw, who=names):
    name = draw(who)
    made = (Claim(each, most, draw(st.booleans())) for each, most in draw(claims).items())
    patience = draw(st.sampled_from([0, 600, 86_400]))
    return Ask(name, f"node-{name}", tuple(made), NOW, patience, within=("pool/p",))


counts = st.fixed_dictionaries({each: st.tuples(subsets, subsets) for each in SCOPES})
operations = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.lists(asks(), min_size=1, max_size=3)),
        st.tuples(st.just("give"), subsets),
        st.tuples(st.just("hand-off"), st.lists(asks(), max_size=2)),
        st.tuples(st.just("census"), counts),
        st.tuples(st.just("bar"), st.sets(st.sampled_from(SCOPES), max_size=1)),
        st.tuples(st.sampled_from(["freeze", "thaw", "new-run"]), st.none()),
        st.tuples(st.just("time"), st.integers(1, 5_000)),
    ),
    max_size=15,
)


@dataclass
class World:
    """The facts as they happened, beside the ledger that is on trial."""

    ledger: Ledger = field(default_factory=Ledger)
    now: datetime = NOW
    census: Census | None = None
    frozen: bool = False
    barred: dict[str, str] = field(default_factory=dict)

    def do(self, verb, what):
        before = self.ledger
        if verb == "ask":
            self.ledger = budget.ask(before, what, self.now)
        elif verb == "give":
            self.ledger = budget.give(before, what, self.now)
        elif verb == "hand-off":
            self.ledger = budget.hand_off(before, what, self.now)
        elif verb == "new-run":
            self.ledger = unpack(pack(before))
            assert self.ledger == before
        elif verb == "freeze":
            self.ledger, self.frozen = budget.freeze(before, "ada", "why", self.now), True
        elif verb == "thaw":
            self.frozen, self.ledger = False, budget.thaw(before, self.now)
        elif verb == "time":
            self.now += timedelta(seconds=what)
        else:
            self._count(verb, what)
        return before

    def _count(self, verb, what):
        self.now += timedelta(seconds=1)
        scopes = self.census.scopes if self.census else {}
        if verb == "census":
            scopes = {
                name: ScopeCensus(9, 0, *(tuple(f"node-{one}" for one in sorted(e)) for e in pair))
                for name, pair in what.items()
            }
        else:
            self.barred = dict.fromkeys(what, "too much is sick")
        self.census = Census(self.now, scopes, self.barred)
        self.ledger = budget.count(self.ledger, self.census, self.now)


def out(world: World, scope: str, hand_offs: bool, leases: tuple[Lease, ...]) -> int:
    """The model: every node that is out in the scope, each once; `leases` are those so far."""
    ledger, counted = world.ledger, (world.census or Census(NOW)).scopes.get(scope, ScopeCensus(0))

    def inside(every: Sequence[Lease | WithPeople]) -> set[str]:
        return {one.ask.node for one in every if scope in {each.scope for each in one.ask.claims}}

    theirs = inside(ledger.with_people) | set(counted.handed_off)
    down = set(counted.down) - theirs
    served = {each.node for each in ledger.waiting} | {each.ask.node for each in ledger.leases}
    return len(inside(leases) | ((down | theirs if hand_offs else down) - served))


@settings(max_examples=150, deadline=None)
@given(operations)
def test_no_grant_is_beyond_any_maximum_and_nobody_is_on_record_twice(steps):
    world = World()
    for verb, what in steps:
        before = world.do(verb, what)
        ledger = world.ledger
        granted = [each.ask for each in ledger.leases if each.ask.incident not in before.holders]
        for number, lease in enumerate(ledger.leases, 1):
            for claim in lease.ask.claims if lease.ask in granted else ():
                so_far = ledger.leases[:number]
                assert out(world, claim.scope, claim.hand_offs, so_far) <= claim.maximum
        if granted:
            assert not world.frozen
            assert world.census
            assert world.now - world.census.at <= timedelta(seconds=60)
            scopes = {each.scope for ask in granted for each in ask.claims} | {"pool/p"}
            assert scopes.isdisjoint(world.barred)
        held, theirs = (lease.ask for lease in ledger.leases), (e.ask for e in ledger.with_people)
        every = [*held, *theirs, *ledger.waiting]
        assert len({each.incident for each in every}) == len(every) <= len(NAMES)


@settings(max_examples=75, deadline=None)
@given(operations)
def test_who_could_be_served_is_served_and_asking_again_changes_nothing(steps):
    """The queue is never idle: in the quiet after a census no ask is left that would fit alone."""
    world = World()
    for verb, what in steps:
        world.do(verb, what)
    world.do("thaw", None)
    world.do("bar", set())
    asked = budget.ask(world.ledger, world.ledger.waiting, world.now)
    assert asked.holders == world.ledger.holders
    assert [e.incident for e in asked.waiting] == [e.incident for e in world.ledger.waiting]
    for ask in world.ledger.waiting:
        leases = world.ledger.leases
        room = [out(world, e.scope, e.hand_offs, leases) < e.maximum for e in ask.claims]
        kept = any(each.due + OVERDUE <= world.now for each in world.ledger.waiting)
        assert not all(room) or kept


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sets(st.sampled_from(SCOPES), min_size=1), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_nobody_waits_for_longer_than_everybody_who_came_before(crowd, dice):
    """Every five minutes one lease comes back and two more urgent asks come in.

    The bound: until its patience (an hour at most) and `OVERDUE` are over, and then for as many
    generations of leases as there are asks before it, however many come after.
    """
    now, ledger, rounds, ahead = NOW, Ledger(), 0, 0
    numbers = iter(range(10_000))

    def come(scopes, patience=0):
        name = f"{next(numbers):04}"
        made = tuple(Claim(each, 1) for each in sorted(scopes))
        return name, budget.ask(ledger, [Ask(name, name, made, now, patience)], now)

    for scopes in crowd:
        _, ledger = come(scopes)
    patient, ledger = come({"cluster/c", "rack/r1"}, 86_400)
    while patient not in ledger.holders:
        now += timedelta(minutes=5)
        ledger = budget.count(ledger, Census(now), now)
        if patient in ledger.holders:
            break
        back = [dice.choice(sorted(ledger.holders))]
        if now >= NOW + MOST_OVERTAKING + OVERDUE:
            due = next(e.due for e in ledger.waiting if e.incident == patient)
            ahead = ahead or sum(e.due <= due for e in ledger.waiting)
            back = [e.ask.incident for e in ledger.leases]
            rounds += 1
            assert rounds <= ahead
        for each in back:
            ledger = budget.give(ledger, {each}, now)
        _, ledger = come({"cluster/c"})
        _, ledger = come({"rack/r1"})


def counted(now: datetime = NOW) -> Ledger:
    return Ledger(census=Census(now), counted=now)


def ask(name: str, patience: int = 0, **maxima: int) -> Ask:
    made = tuple(Claim(scope, most) for scope, most in (maxima or {"c": 1}).items())
    return Ask(name, f"node-{name}", made, NOW, patience)


def test_what_jobs_may_stay_with_longer_is_served_later_but_within_the_hour():
    ledger = budget.ask(counted(), [ask("holder")], NOW)
    ledger = budget.ask(ledger, [ask("patient", 86_400)], NOW)
    soon, late = NOW + timedelta(minutes=59), NOW + timedelta(minutes=61)
    ledger = budget.ask(ledger, [ask("urgent")], soon)
    ledger = budget.ask(ledger, [ask("too-late")], late)
    assert [each.incident for each in ledger.waiting] == ["urgent", "patient", "too-late"]


def test_an_ask_that_waits_too_long_is_kept_room_for_where_its_scopes_come_free_one_by_one():
    """Two scopes that are never free at once: who needs both would wait for ever."""
    ledger = budget.ask(counted(), [ask("x1", x=1), ask("y1", y=1), ask("z", x=1, y=1)], NOW)
    later = NOW + OVERDUE
    ledger = budget.count(ledger, Census(later), later)
    ledger = budget.ask(ledger, [ask("x2", x=1), ask("y2", y=1)], later)
    ledger = budget.give(ledger, {"x1"}, later)
    assert ledger.holders == {"y1"}
    assert budget.give(ledger, {"y1"}, later).holders == {"z"}


def test_a_full_rack_keeps_no_room_in_the_cluster_however_long_somebody_waits():
    ledger = budget.ask(counted(), [ask("a", c=2, r1=1), ask("b", c=2, r1=1)], NOW)
    later = NOW + 3 * OVERDUE
    ledger = budget.count(ledger, Census(later), later)
    assert budget.ask(ledger, [ask("c", c=2, r2=1)], later).holders == {"a", "c"}


def test_a_census_of_a_clock_that_runs_ahead_is_judged_by_when_it_came():
    ahead = Census(NOW + timedelta(hours=1))
    ledger = budget.count(Ledger(), ahead, NOW)
    assert budget.ask(ledger, [ask("a")], NOW + timedelta(seconds=59)).holders == {"a"}
    late = budget.ask(ledger, [ask("a")], NOW + timedelta(seconds=61))
    assert not late.holders
    assert "61 s old" in view(late, NOW + timedelta(seconds=61)).queue[0].why


def test_without_a_census_nothing_is_granted_and_the_first_one_serves_who_waits():
    ledger = budget.ask(Ledger(), [ask("a")], NOW)
    assert (
        view(ledger, NOW).queue[0].why == "nobody has counted the fleet yet: does the watcher run?"
    )
    assert budget.count(ledger, Census(NOW), NOW).holders == {"a"}


def test_a_node_that_is_down_and_asks_is_not_in_its_own_way():
    down = {"c": ScopeCensus(9, 0, ("node-a", "node-b"))}
    ledger = budget.count(Ledger(), Census(NOW, down), NOW)
    ledger = budget.ask(ledger, [ask("a", c=2)], NOW)
    assert ledger.holders == {"a"}
    other = budget.ask(ledger, [ask("x", c=2)], NOW)
    assert view(other, NOW).queue[0].why == "c lends 2 at once (1 lent, 1 down for other reasons)"


def test_a_breaker_bars_its_scope_even_where_no_budget_counts_in_it():
    barred = Census(NOW, {}, {"pool/p": "40% of pool/p is sick"})
    ledger = budget.count(Ledger(), barred, NOW)
    ledger = budget.ask(ledger, [replace(ask("a"), within=("pool/p",)), ask("b")], NOW)
    assert ledger.holders == {"b"}
    assert "breaker of pool/p is open: 40%" in view(ledger, NOW).queue[0].why


def test_a_hand_off_uses_its_scope_where_the_policy_of_who_asks_counts_it():
    handed = budget.hand_off(counted(), [ask("h", c=1, r=1)], NOW)
    counts = Ask("a", "node-a", (Claim("c", 1, hand_offs=True),), NOW)
    assert not budget.ask(handed, [counts], NOW).holders
    assert budget.ask(handed, [ask("b", r=1)], NOW).holders == {"b"}
    assert budget.give(handed, {"h"}, NOW).with_people == ()


def test_a_look_frees_who_is_over_and_leaves_whom_it_could_not_tell_or_who_spoke_meanwhile():
    ledger = budget.ask(counted(), [ask(each, c=9) for each in ("a", "b", "d", "e")], NOW)
    began, now = NOW + timedelta(minutes=10), NOW + timedelta(minutes=11)
    known = to_look_at(ledger, NOW, 10)
    assert sorted(known) == ["a", "b", "d", "e"]
    ledger = budget.ask(ledger, [ask("e", c=9)], now)
    found = {"a": "over", "b": "open", "e": "over"}
    ledger = looked(ledger, known, found, began, now)
    assert ledger.holders == {"b", "d", "e"}
    assert next_look(ledger) == now


def test_a_lease_whose_incident_says_that_people_have_it_is_freed_and_counted_as_theirs():
    ledger = budget.ask(counted(), [ask("a")], NOW)
    ledger = looked(ledger, {"a"}, {"a": "with-people"}, NOW, NOW)
    assert not ledger.holders
    assert [each.ask.incident for each in ledger.with_people] == ["a"]
    back = looked(ledger, {"a"}, {"a": "open"}, NOW, NOW)
    assert back.with_people == ()


def test_an_ask_that_stays_unanswered_is_counted():
    ledger = budget.ask(Ledger(), [ask("a"), ask("b")], NOW)
    assert not unanswered(ledger, NOW + timedelta(minutes=29))
    assert view(ledger, NOW + timedelta(minutes=30)).unanswered == 2
