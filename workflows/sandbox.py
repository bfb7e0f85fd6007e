"""How workflow code is run: in Temporal's sandbox, with our pure packages passed through.

What is passed through is imported once and not again for each run; it may hold no state and read no
clock, which the import contracts see to.
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH = ("fleet", "policies", "activities.search_attributes", "pydantic", "pydantic_core")

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
)
