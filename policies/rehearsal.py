"""What a step is in a dry run: the outcome that is written down instead of touching anything.

A rehearsed step always succeeds and heals nothing, so the ladder is shown to its end; a rehearsed
verify knows what the reports say and no more. What only reads is really asked.
"""

from dataclasses import replace

from fleet.finding import Finding, Verdict
from fleet.outcome import Outcome, OutcomeKind
from fleet.request import StepRequest
from fleet.step import Step
from policies.schema import Policy

READS = (Step.RECALL, Step.IDLE)
"""Steps that touch nothing: a dry run does them as they are."""
DRY_RUN = "dry-run"
"""The reason of every rehearsed outcome."""
_WORDS = {
    Step.HOLD: "hold",
    Step.LEASE: "ask the disruption budget for",
    Step.GIVE_BACK: "give back the lease of",
    Step.DRAIN: "drain",
    Step.LAUNCH: "have a successor launched for",
    Step.END_JOB: "end a job on",
    Step.RESET_GPU: "reset",
    Step.REBOOT: "reboot",
    Step.REPLACE: "replace",
    Step.RELEASE: "give back",
    Step.CLOSE: "take the mark off",
}


def rehearse(request: StepRequest) -> Outcome:
    """The outcome of a step that was not done; its detail says what would have been."""
    if request.step is Step.VERIFY:
        return _seen(request)
    what = ", ".join(request.parts) + " of " if request.step is Step.RESET_GPU else ""
    detail = f"dry run: would {_WORDS[request.step]} {what}{request.node.name}"
    return Outcome(
        OutcomeKind.SUCCEEDED, DRY_RUN, detail, boot_id=request.boot_id, gave_back=request.lent
    )


def without_rehearsed(policy: Policy, outcome: Outcome) -> Outcome:
    """What a real verify saw, less what policy has in dry run: no matter of a real incident.

    A fault that is only rehearsed neither keeps a node nor leads to a step.
    """
    findings = outcome.findings
    ours = tuple(each for each in findings if not each.fault or not policy.rehearsed(each.fault))
    if len(ours) == len(findings):
        return outcome
    accused = any(each.verdict is Verdict.FAULT for each in ours)
    kind = outcome.kind if accused else OutcomeKind.SUCCEEDED
    return replace(outcome, kind=kind, findings=ours)


def _seen(request: StepRequest) -> Outcome:
    """The faults that are reported now, as if a check of ours had seen them."""
    found = tuple(
        Finding("report", e.part, Verdict.FAULT, e.name, e.code, e.advice) for e in request.faults
    )
    kind = OutcomeKind.PERMANENT if found else OutcomeKind.SUCCEEDED
    detail = "dry run: read from the reports, no Pod was started"
    return Outcome(kind, DRY_RUN, detail, boot_id=request.boot_id, findings=found)
