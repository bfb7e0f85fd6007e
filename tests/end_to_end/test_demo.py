"""The whole way, from a kernel log line to a repaired node: undisturbed, killed, sabotaged.

A few kills stand for the matrix, which runs as a whole with `python -m simulator.demo.matrix`.
"""

import os

import pytest

from simulator.controlplane.programs import missing

ENDED = {
    "recovered": 1,
    "repaired": 3,
    "replaced": 0,
    "handed_off": 0,
    "cancelled": 0,
    "superseded": 0,
}


def went_as_scripted(run):
    assert run.status == 0, run.printed
    assert run.summary["violations"] == []
    assert run.summary["ended"] == ENDED
    assert run.summary["incidents"] == 4


def test_every_fault_ends_as_scripted_and_every_promise_is_kept(demo):
    run = demo("--seed", "1")
    went_as_scripted(run)
    assert (run.summary["seed"], run.summary["nodes"], run.summary["faults"]) == (1, 8, 5)
    for scope, most in run.summary["max_disrupted"].items():
        assert 1 <= most <= run.summary["budget"][scope]
    assert 0.5 < run.summary["node_availability"] < 1.0


@pytest.mark.parametrize("kill", ["worker@reset-gpu:after", "temporal@reboot:before"])
def test_a_process_that_is_killed_at_a_call_changes_no_end_and_does_nothing_twice(demo, kill):
    went_as_scripted(demo("--seed", "2", "--kill", kill))


@pytest.mark.parametrize("promise", ["release", "unknown"])
def test_a_promise_that_is_broken_on_purpose_is_found_under_its_name(demo, promise):
    run = demo("--seed", "1", "--sabotage", promise)
    assert run.status == 1, run.printed
    assert promise in run.broken


@pytest.mark.loopback
def test_the_same_run_passes_on_the_real_kube_apiserver(demo):
    if absent := missing():
        text = f"{' and '.join(absent)} not built: run `uv run poe controlplane` once"
        if os.environ.get("GPUMEND_REQUIRE_CONTROLPLANE"):
            pytest.fail(text)
        pytest.skip(text)
    went_as_scripted(demo("--seed", "1", "--real"))
