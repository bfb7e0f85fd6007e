"""What a policy may not say although each of its words is right."""

import pytest

from fleet.fault import FaultName
from fleet.step import REPAIRS, Step
from policies.document import PolicyErrors, load
from policies.fault_rules import FAULT_RULES
from policies.fault_terms import FaultTerms
from policies.policy_rules import POLICY_RULES

CONTRADICTIONS = {
    "steps_climb": ("faults: {slow: {steps: [reboot, reset-gpu]}}", "faults.slow.steps[1]"),
    "steps_need_a_hold": ("faults: {slow: {hold: no, steps: [reboot]}}", "faults.slow.hold"),
    "drains_need_a_hold": ("faults: {slow: {hold: no, drain: {}}}", "faults.slow.drain"),
    "steps_need_a_drain": ("faults: {slow: {drain: none, steps: [reboot]}}", "faults.slow.drain"),
    "an_unreachable_node_is_not_drained": (
        "faults: {host-unreachable: {drain: none, steps: [reset-gpu, reboot]}}",
        "faults.host-unreachable.steps[0]",
    ),
    "force_is_for_emergencies": (
        "faults: {slow: {tolerate: 1s, drain: {after_deadline: force}, steps: [reboot]}}",
        "faults.slow.drain.after_deadline",
    ),
    "steps_need_checks": (
        "faults: {slow: {verify: {checks: []}, steps: [reboot]}}",
        "faults.slow.verify.checks",
    ),
    "idling_needs_a_tolerance": (
        "faults: {slow: {tolerate: 0s, sooner_if_idle: yes, steps: [reboot]}}",
        "faults.slow.sooner_if_idle",
    ),
    "attempts_are_for_listed_steps": (
        "faults: {slow: {attempts: {reset-gpu: 1}, steps: [reboot]}}",
        "faults.slow.attempts.reset-gpu",
    ),
    "some_faults_are_not_the_nodes": (
        "faults: {unknown-code: {steps: [reboot]}}",
        "faults.unknown-code.steps[0]",
    ),
    "budget_scopes_are_unique": (
        "budgets: [{scope: rack, max: 1}, {scope: rack, max: 2}]",
        "budgets[1].scope",
    ),
    "the_breaker_counts_nodes": ("breaker: {scope: job}", "breaker.scope"),
    "approvals_are_unique": (
        "faults: {slow: {steps: [reboot]}}\napprovals: [{step: reboot}, {step: reboot}]",
        "approvals[1].step",
    ),
    "approvals_are_for_used_steps": ("approvals: [{step: reboot}]", "approvals[0].step"),
    "signals_are_unique": (
        "faults: {slow: {}}\nsignals:\n- &a {type: A, status: 'True', fault: slow}\n- *a",
        "signals[1]",
    ),
    "signals_mean_listed_faults": (
        "signals: [{type: A, status: 'True', fault: slow}]",
        "signals[0].fault",
    ),
    "verify_has_time_to_settle": (
        "faults: {slow: {steps: [reboot], verify: {settle: 1h}}}",
        "faults.slow.verify.settle",
    ),
    "facts_have_time_to_come": ("limits: {unknown_wait: 59s}", "limits.unknown_wait"),
    "a_sweep_looks_before_nodes_are_due_again": (
        "proving: {sweep: {every: 1h, look: 1h}}",
        "proving.sweep.look",
    ),
    "a_sweep_rests_between_looks": ("proving: {sweep: {look: 59s}}", "proving.sweep.look"),
    "pairs_are_looked_for_before_nodes_are_due_again": (
        "proving: {pairs: {every: 6h}}",
        "proving.pairs.look",
    ),
    "a_trial_has_time": ("proving: {pairs: {add_up: 9s}}", "proving.pairs.add_up"),
}


def test_every_rule_has_a_contradiction_here() -> None:
    rules = [each.check.__name__ for each in FAULT_RULES]
    rules += [each.check.__name__ for each in POLICY_RULES]
    assert rules == list(CONTRADICTIONS)


@pytest.mark.parametrize(("text", "path"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_one_mistake_at_its_place(text: str, path: str) -> None:
    with pytest.raises(PolicyErrors) as caught:
        load(text, "p.yaml")
    (mistake,) = caught.value.mistakes
    assert mistake.path == path
    assert mistake.remedy


def test_a_step_may_not_stand_twice() -> None:
    with pytest.raises(PolicyErrors, match=r"steps\[1\].*write \[reboot\]"):
        load("faults: {slow: {steps: [reboot, reboot]}}", "p")


@pytest.mark.parametrize(
    "text",
    [
        "faults: {slow: {tolerate: 10, drain: {after_deadline: force}, steps: [reboot]}}",
        "faults: {slow: {verify: {checks: [memry]}, steps: [reboot]}}",
        "faults: {host-unreachable: {drain: 5, steps: [reboot]}}",
        "faults: {slow: {attempts: {reset-gpu: 1}, steps: [reset-cpu]}}",
        "faults: {slow: {steps: [rebot]}}\napprovals: [{step: reboot}]",
        "faults: {solw: {steps: [reboot]}}\napprovals: [{step: reboot}]",
        "faults: 5\napprovals: [{step: reboot}]",
        "limits: {verify: 1}\nfaults: {slow: {steps: [reboot], verify: {settle: 1h}}}",
        "faults: {slow: {hold: 7, steps: [reboot]}}",
    ],
)
def test_a_mistake_elsewhere_does_not_make_a_rule_complain_in_vain(text: str) -> None:
    with pytest.raises(PolicyErrors) as caught:
        load(text, "p.yaml")
    assert len(caught.value.mistakes) == 1, caught.value


def test_a_broken_part_does_not_hide_contradictions_in_its_list() -> None:
    text = """\
budgets:
  - {scope: rack, max: none}
  - {scope: cluster, max: 1}
  - {scope: cluster, max: 2}
"""
    with pytest.raises(PolicyErrors) as caught:
        load(text, "p.yaml")
    assert [(each.line, each.path) for each in caught.value.mistakes] == [
        (2, "budgets[0].max"),
        (4, "budgets[2].scope"),
    ]


@pytest.mark.parametrize("step", [Step.RESET_GPU, Step.REBOOT, Step.REPLACE])
@pytest.mark.parametrize(
    "name",
    [
        FaultName.APPLICATION,
        FaultName.MONITOR_SILENT,
        FaultName.UNKNOWN_CODE,
        FaultName.CONFIG_MISMATCH,
    ],
)
def test_no_policy_can_repair_a_node_for_what_is_not_its_fault(name: FaultName, step: Step) -> None:
    with pytest.raises(PolicyErrors):
        load(f"faults: {{{name.value}: {{steps: [{step.value}]}}}}", "p")


def test_a_job_may_be_ended_for_its_own_error() -> None:
    policy = load("faults: {application: {steps: [end-job]}}", "p")
    assert policy.fault(FaultName.APPLICATION).steps == (Step.END_JOB,)


def test_every_climbing_ladder_is_accepted() -> None:
    assert FaultTerms(steps=REPAIRS).steps == REPAIRS
    for start in range(len(REPAIRS)):
        steps = ", ".join(REPAIRS[start:])
        load(f"faults: {{slow: {{steps: [{steps}]}}}}", "p")
