"""An observer that finds nothing when a promise is broken on purpose would prove nothing."""

import pytest


@pytest.mark.parametrize("promise", ["budget", "release", "unknown"])
def test_a_promise_that_is_broken_on_purpose_is_found_under_its_name(demo, promise):
    run = demo("--nodes", "8", "--seed", "1", "--sabotage", promise)
    assert run.status == 1, run.printed
    assert promise in run.broken
