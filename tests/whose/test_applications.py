"""Faults of jobs are counted within bounds, whatever a log may name."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.agent_figure import APPLICATION_FAULTS
from fleet.part import Part
from probes.agent.counting import count_applications
from probes.agent.figures import Figures
from probes.applications import LIMIT, UNKNOWN, ApplicationFault, Applications
from probes.pod_names import PodName

A = Part("gpu:0")
LLM = PodName("train", "llm-0")


def test_a_pod_that_nobody_can_tell_has_a_count_of_its_own():
    counted = Applications()
    counted.add(A, "xid:31", "p")
    counted.add(A, "xid:31")
    assert counted.counts == {
        ApplicationFault(A, "xid:31", "p"): 1,
        ApplicationFault(A, "xid:31"): 1,
    }


def test_a_pod_that_comes_back_under_its_name_goes_on_with_its_count():
    counted = Applications()
    counted.add(A, "xid:31", "first", LLM)
    counted.add(A, "xid:31", "second", LLM)
    counted.add(A, "xid:31", "second")
    counted.add(A, "xid:31", "nameless")
    assert counted.by_name() == {(A, "xid:31", LLM): 3, (A, "xid:31", UNKNOWN): 1}


def test_a_scrape_reads_namespace_and_pod_and_says_so_where_nobody_knows():
    counted, figures = Applications(), Figures()
    counted.add(A, "xid:31", "u", LLM)
    counted.add(A, "xid:13")
    count_applications(figures, counted)
    name = APPLICATION_FAULTS.exposed
    assert f'{name}{{part="gpu:0",code="xid:31",namespace="train",pod="llm-0"}} 1' in figures.text()
    known = f'{name}{{part="gpu:0",code="xid:13",namespace="unknown",pod="unknown"}} 1'
    assert known in figures.text()


@settings(max_examples=20)
@given(st.lists(st.integers(min_value=0, max_value=LIMIT + 20), max_size=60))
def test_of_too_many_kinds_the_one_that_came_longest_ago_goes_with_its_name(again):
    counted = Applications()
    order: list[int] = []
    for number in (*range(LIMIT + 5), *again):
        counted.add(A, "xid:31", f"pod-{number}", PodName("n", f"p{number}"))
        order = [*(each for each in order if each != number), number]
    assert [each.pod for each in counted.counts] == [f"pod-{each}" for each in order[-LIMIT:]]
    gone = f"pod-{order[0]}"
    assert counted.name(gone) == UNKNOWN
    assert UNKNOWN not in {name for _, _, name in counted.by_name()}
