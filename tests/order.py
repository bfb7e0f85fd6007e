"""Which test files begin, and which of them one worker runs one after the other.

By file, since fixtures of a file are shared. What takes longest begins, so that no worker is alone
with it at the end; of demos, which are processes that mostly wait, two run beside other tests.
"""

from pathlib import PurePath

import pytest
from xdist.scheduler import LoadScopeScheduling

FIRST = (
    "tests/end_to_end/test_sabotaged.py",
    "tests/end_to_end/test_undisturbed.py",
    "tests/end_to_end/test_killed.py",
    "tests/end_to_end/test_real_api_server.py",
    "tests/worker/test_start_and_stop.py",
    "tests/temporal",
    "tests/console",
    "tests/killed",
    "tests/agent/test_the_agent_as_a_process.py",
    "tests/node_step",
    "tests/contract",
    "tests/simulator",
    "tests/incidents",
    "tests/kernel_log",
    "tests/words",
)
"""Files and folders, longest first; the others follow in their order."""
TOGETHER = {
    "tests/end_to_end/test_sabotaged.py": "four demos",
    "tests/end_to_end/test_undisturbed.py": "four demos",
    "tests/end_to_end/test_killed.py": "three demos",
    "tests/end_to_end/test_real_api_server.py": "three demos",
}


def turn(item: pytest.Item) -> int:
    """The place of a test's file among those that begin."""
    path = PurePath(item.nodeid.split("::")[0])
    turns = (turn for turn, each in enumerate(FIRST) if path.is_relative_to(each))
    return next(turns, len(FIRST))


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """A worker takes a file at a time, or files that belong together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return TOGETHER.get(file, file)
