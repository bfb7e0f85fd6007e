"""The ledger against a dumb second implementation, and its promises one by one."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.census import Census
from policies import budget
from policies.budget_use import Use, stopped
from policies.ledger import Ask, Claim, Ledger

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


COUNTED = Ledger(census=Census(NOW), counted=NOW)


def ask(incident: str, age: int = 0, **maxima: int) -> Ask:
    claims = tuple(Claim(scope, most) for scope, most in (maxima or {"cluster": 1}).items())
    return Ask(incident, f"node-{incident}", claims, NOW - timedelta(seconds=age))


def asked(ledger: Ledger, *asks: Ask) -> Ledger:
    return budget.ask(ledger, asks, NOW)


def test_asking_twice_is_asking_once():
    once = asked(COUNTED, ask("a"), ask("b"))
    assert asked(once, ask("a"), ask("b")) == budget.told(once, {"a"})
    assert once.holders == {"a"}


def test_every_scope_must_agree():
    ledger = asked(COUNTED, ask("a", cluster=5, rack=1))
    ledger = asked(ledger, ask("b", cluster=5, rack=1), ask("c", cluster=5, other=1))
    assert ledger.holders == {"a", "c"}
    assert Use(ledger).why(ledger.waiting[0]) == "rack lends 1 at once"


def test_who_waits_longest_is_served_first():
    ledger = asked(COUNTED, ask("a"), ask("young", 1), ask("old", 100))
    assert ledger.holders == {"old"}
    assert budget.give(ledger, {"old"}, NOW).holders == {"young"}


def test_a_full_rack_holds_up_no_other_rack():
    ledger = asked(COUNTED, ask("a", 9, cluster=3, r1=1), ask("b", 8, cluster=3, r1=1))
    assert asked(ledger, ask("c", 1, cluster=3, r2=1)).holders == {"a", "c"}


def test_giving_back_what_was_never_had_changes_nothing():
    ledger = asked(COUNTED, ask("a"), ask("b"))
    assert budget.give(ledger, {"x"}, NOW) == ledger


def test_a_withdrawn_ask_is_not_granted_later():
    ledger = budget.give(asked(COUNTED, ask("a", 2), ask("b", 1)), {"b"}, NOW)
    assert budget.give(ledger, {"a"}, NOW) == COUNTED


def test_nothing_is_granted_while_frozen_and_leases_stay():
    ledger = budget.freeze(asked(COUNTED, ask("a")), "ada", "storm", NOW)
    ledger = budget.give(asked(ledger, ask("b")), {"a"}, NOW)
    assert ledger.holders == frozenset()
    assert "ada" in stopped(ledger, NOW)
    assert budget.thaw(ledger, NOW).holders == {"b"}


def test_a_maximum_of_none_grants_nothing():
    assert asked(COUNTED, ask("a", cluster=0)).holders == frozenset()


SCOPES = {"cluster": 3, "r1": 1, "r2": 2}
operations = st.lists(
    st.tuples(
        st.sampled_from(["ask", "give", "freeze", "thaw"]),
        st.sampled_from("abcdefgh"),
        st.sets(st.sampled_from(["r1", "r2"])),
        st.integers(0, 50),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(operations)
def test_whatever_is_asked_no_scope_is_ever_above_its_maximum(steps):
    ledger, held, frozen = COUNTED, dict[str, tuple[str, ...]](), False
    waiting: dict[str, tuple[int, tuple[str, ...]]] = {}
    for verb, who, racks, age in steps:
        scopes = ("cluster", *sorted(racks))
        if verb == "ask":
            maxima = {each: SCOPES[each] for each in scopes}
            ledger = asked(ledger, ask(who, age, **maxima))
            if who not in held:
                waiting[who] = (age, scopes)
        elif verb == "give":
            ledger = budget.give(ledger, {who}, NOW)
            held.pop(who, None)
            waiting.pop(who, None)
        elif verb == "freeze":
            ledger, frozen = budget.freeze(ledger, "ada", "why", NOW), True
        else:
            ledger, frozen = budget.thaw(ledger, NOW), False
        if not frozen:
            _serve(held, waiting)
        assert ledger.holders == set(held)
        assert all(count <= SCOPES[scope] for scope, count in ledger.used.items())


def _serve(
    held: dict[str, tuple[str, ...]], waiting: dict[str, tuple[int, tuple[str, ...]]]
) -> None:
    """The dumb one: look through everybody, again and again, until nobody fits."""
    for who in sorted(waiting, key=lambda each: (-waiting[each][0], each)):
        used = Counter(scope for scopes in held.values() for scope in scopes)
        if all(used[scope] < SCOPES[scope] for scope in waiting[who][1]):
            held[who] = waiting.pop(who)[1]
