"""The whole way, from a kernel log line to a repaired node."""

from tests.end_to_end.script import went_as_scripted


def test_every_fault_ends_as_scripted_and_every_promise_is_kept(demo):
    run = demo("--nodes", "8", "--seed", "1")
    went_as_scripted(run)
    assert (run.summary["seed"], run.summary["nodes"], run.summary["faults"]) == (1, 8, 5)
    for scope, most in run.summary["max_disrupted"].items():
        assert 1 <= most <= run.summary["budget"][scope]
    assert 0.5 < run.summary["node_availability"] < 1.0
