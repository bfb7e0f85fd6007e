"""What a workflow takes is of packages that pass through the sandbox.

A type of the sandbox's own is another one in each run: what `activities.adapters.payloads` keeps of
it would be worked out anew for each incident, and would keep the whole sandbox of that run.
"""

import inspect
from typing import Any, get_args, get_type_hints

import pytest

from tests.temporal.replaying import WORKFLOWS
from workflows.sandbox import PASSED_THROUGH

BUILT_IN = ("builtins", "collections.abc", "types", "typing", "datetime")


def handlers():
    for workflow in WORKFLOWS:
        for name, function in inspect.getmembers(workflow, inspect.isfunction):
            if name == "__init__" or not name.startswith("_"):
                yield pytest.param(function, id=function.__qualname__)


def named(hint):
    yield hint
    for each in get_args(hint):
        yield from named(each)


@pytest.mark.parametrize("handler", tuple(handlers()))
def test_what_a_workflow_takes_is_no_type_of_its_own_sandbox(handler):
    hints = get_type_hints(handler)
    for either in ("self", "return"):
        hints.pop(either, None)
    for hint in hints.values():
        for each in named(hint):
            module = getattr(each, "__module__", "builtins")
            assert each is Any or module.startswith((*BUILT_IN, *PASSED_THROUGH)), each
