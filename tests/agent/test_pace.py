"""How often the Node may be patched: news at once, counts at leisure, one a second on the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.agent.pace import AT_ONCE, COUNTS_PERIOD, PATCH_PERIOD, Pace


def paced(asks):
    """When each of these asks, (time, urgent), was sent by somebody who waits as told."""
    pace, now, sent = Pace(), 0.0, []
    for at, urgent in asks:
        now = max(now, at)
        now += pace.wait(now, urgent)
        pace.spend(now)
        sent.append(now)
    return sent


def test_a_few_faults_in_a_row_go_out_at_once_and_the_next_wait_a_second_each():
    sent = paced([(10.0, True)] * (AT_ONCE + 2))
    assert sent == [10.0] * AT_ONCE + [pytest.approx(11.0), pytest.approx(12.0)]


def test_counts_leave_room_for_news():
    assert paced([(10.0, False), (10.0, False)]) == [10.0, 10.0 + COUNTS_PERIOD]
    assert paced([(10.0, False), (10.5, True)]) == [10.0, 10.5]


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=60))
def test_over_any_time_there_is_one_patch_a_second_and_a_few_more(asks):
    sent = paced(sorted(asks))
    for first, begin in enumerate(sent):
        for last, end in enumerate(sent[first:], start=1):
            assert last <= (end - begin) / PATCH_PERIOD + AT_ONCE + 1e-6
