"""How workflow code is run: in Temporal's sandbox, with our pure packages passed through.

What is passed through is imported once and not again for each run; it may hold no state and read no
clock, which the import contracts see to.
"""

import sys

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH = ("fleet", "policies", "activities.search_attributes", "pydantic", "pydantic_core")

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
)


def keep_bytecode() -> None:
    """Compile workflow code once a process, also where an image says that bytecode is not kept.

    Each new run imports it anew, and half of that was to compile it.
    """
    sys.dont_write_bytecode = False
