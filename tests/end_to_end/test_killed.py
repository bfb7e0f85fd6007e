"""A few kills stand for the matrix, which runs with `python -m simulator.demo.matrix`."""

import pytest

from tests.end_to_end.script import went_as_scripted


@pytest.mark.parametrize("kill", ["worker@reset-gpu:after", "temporal@reboot:before"])
def test_a_process_that_is_killed_at_a_call_changes_no_end_and_does_nothing_twice(demo, kill):
    went_as_scripted(demo("--nodes", "8", "--seed", "2", "--kill", kill))
