"""The judge of pairs: it finds the odd nodes, and never blames one on a single peer's word."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.pairwise import MOST_PEERS, Course, Judgement, Pair, judge, next_pairs

WELL, FAILED, UNKNOWN = Course.WELL, Course.FAILED, Course.UNKNOWN


def pair(names: str, course: Course) -> Pair:
    return Pair(names[0], names[1], course)


@pytest.mark.parametrize(
    ("pairs", "odd", "still_open"),
    [
        ([], "", "abcd"),
        ([pair("ab", FAILED)], "", "abcd"),
        ([pair("ab", WELL)], "", "cd"),
        ([pair("ab", FAILED), pair("cd", WELL)], "", "ab"),
        ([pair("ab", FAILED), pair("cd", WELL), pair("ac", FAILED), pair("bd", WELL)], "a", ""),
        ([pair("ab", FAILED), pair("cd", WELL), pair("ac", UNKNOWN), pair("bd", WELL)], "", "a"),
        ([pair("ab", FAILED), pair("cd", WELL), pair("ac", WELL), pair("bd", WELL)], "", ""),
        ([pair(a + b, FAILED) for a, b in combinations("abcd", 2)], "", "abcd"),
        ([pair("ab", WELL), pair("ab", FAILED)], "", "abcd"),
    ],
)
def test_a_third_node_decides(pairs, odd, still_open):
    judgement = judge("abcd", pairs)
    assert "".join(judgement.odd) == odd
    assert "".join(judgement.open) == still_open


def test_a_pair_that_failed_between_two_that_are_well_is_the_link_between_them():
    pairs = [pair("ab", FAILED), pair("cd", WELL), pair("ac", WELL), pair("bd", WELL)]
    assert judge("abcd", pairs) == Judgement((), ("a", "b", "c", "d"), (), (("a", "b"),))


@pytest.mark.parametrize("names", ["aa", "ba"])
def test_what_is_no_pair_is_refused(names):
    with pytest.raises(ValueError, match="pair"):
        pair(names, WELL)


def tried(nodes, sick, lost=frozenset()):
    """All rounds against the truth; what is asked for `lost` pairs cannot be told."""
    pairs: list[Pair] = []
    rounds = 0
    while wanted := next_pairs(nodes, pairs):
        assert len({name for each in wanted for name in each}) == 2 * len(wanted)
        for one, other in wanted:
            course = FAILED if {one, other} & sick else WELL
            pairs.append(Pair(one, other, UNKNOWN if (one, other) in lost else course))
        rounds += 1
        assert rounds <= 2 * len(nodes) + MOST_PEERS
    return pairs, judge(nodes, pairs)


clusters = st.integers(2, 12).flatmap(
    lambda size: st.tuples(
        st.permutations([f"n{index:02}" for index in range(size)]),
        st.sets(st.sampled_from([f"n{index:02}" for index in range(size)]), max_size=size),
    )
)


@given(cluster=clusters, data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_sound_node_is_ever_blamed(cluster, data):
    nodes, sick = cluster
    every = [tuple(sorted(each)) for each in combinations(nodes, 2)]
    lost = frozenset(data.draw(st.lists(st.sampled_from(every), max_size=10)))
    pairs, judgement = tried(nodes, sick, lost)
    some = judge(nodes, pairs[: data.draw(st.integers(0, len(pairs)))])
    assert set(judgement.odd) | set(some.odd) <= sick
    assert not set(judgement.well) & sick


@given(cluster=clusters)
@settings(max_examples=60, deadline=None)
def test_where_two_neighbours_are_well_every_sick_node_is_found(cluster):
    nodes, sick = cluster
    _, judgement = tried(nodes, sick)
    neighbours = list(zip(nodes[::2], nodes[1::2], strict=False))
    if any(not set(each) & sick for each in neighbours):
        assert set(judgement.odd) == sick
        assert judgement.open == ()


@given(
    pairs=st.lists(
        st.builds(
            lambda names, course: Pair(min(names), max(names), course),
            st.sets(st.sampled_from("abcdef"), min_size=2, max_size=2),
            st.sampled_from(Course),
        ),
        max_size=15,
    )
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_pairs_say_who_is_blamed_failed_with_two_that_did_well(pairs):
    judgement = judge("abcdef", pairs)
    assert sorted((*judgement.odd, *judgement.well, *judgement.open)) == list("abcdef")
    assert judge("abcdef", reversed(pairs)) == judgement
    for node in judgement.odd:
        failed = {
            n
            for e in pairs
            if e.course is FAILED
            for n in (e.first, e.second)
            if node in (e.first, e.second)
        } - {node}
        assert len(failed & set(judgement.well)) >= 2


def test_too_many_nodes_are_refused_and_not_cut_short():
    with pytest.raises(ValueError, match="in groups"):
        next_pairs([f"n{index}" for index in range(4_097)], [])
