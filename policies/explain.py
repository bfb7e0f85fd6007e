"""A policy in words: what happens to a node with a fault, in order, with all its times."""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from fleet.fault import FaultName
from fleet.step import Step
from policies.budget_terms import Budget
from policies.durations import format_duration
from policies.fault_terms import AfterDeadline, Drain, FaultTerms
from policies.meanings import MEANING
from policies.schema import Policy
from policies.scopes import CLUSTER

_AFTER = {
    AfterDeadline.ASK: "then a person is asked",
    AfterDeadline.HAND_OFF: "then hand-off",
    AfterDeadline.FORCE: "then what is left is deleted, with its own grace period",
}
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One word of the ladder and what it means here."""

    step: Step
    words: str


def explain(policy: Policy, name: FaultName) -> tuple[Line, ...]:
    """The ladder of one fault; empty where nothing is done."""
    terms = policy.fault(name)
    return tuple(_ladder(policy, terms)) if terms.hold else ()


def render(policy: Policy, name: FaultName) -> str:
    """The ladder of one fault as text."""
    title = f"{name.value}: {MEANING[name]}"
    lines = explain(policy, name)
    if not lines:
        told = "people are told" if policy.fault(name).notify else "it is counted, and that is all"
        return f"{title}\n  nothing is held and nothing is repaired; {told}"
    listed = "" if name in policy.faults else "  (not listed in this policy)\n"
    dry = "  (dry run: decided and shown, nothing is touched)\n" if policy.rehearsed(name) else ""
    return f"{title}\n{listed}{dry}" + "\n".join(_wrapped(line) for line in lines)


def render_proving(policy: Policy) -> str:
    """How new and idle nodes are proven, as text."""
    terms = policy.proving
    checks, most = ", ".join(terms.checks), format_duration(terms.limit)
    again = f"{terms.tries} tries, {format_duration(terms.pause)} apart"
    lines = [
        "proving: a node with the taint gpumend.io/unproven takes work once it is proven",
        f"  proven     {checks} pass within {most}, and its agent says that all is well",
        f"  untold     {again}; then a new node is tried again later, more and more seldom",
        "  found      a fault like any other: hold, and its ladder; then it is proven anew",
        f"  sweep      {_sweep(policy)}",
        f"  pairs      {_pairs(policy)}",
    ]
    dry = ["  (dry run: nothing is proven or swept)"] if policy.dry_run else []
    return "\n".join("\n".join(_folded(each)) for each in [*lines, *dry])


def _folded(line: str) -> list[str]:
    return wrap(line, _WIDTH, subsequent_indent=" " * 13, break_on_hyphens=False)


def _sweep(policy: Policy) -> str:
    sweep = policy.proving.sweep
    if sweep is None:
        return "none: idle nodes in service are left alone"
    every, look = format_duration(sweep.every), format_duration(sweep.look)
    most = ", ".join(_budget(each) for each in policy.budgets)
    return (
        f"idle nodes not proven for {every}, looked for every {look}, {sweep.at_once} at once,"
        f" within {most}; one that gets work first is let go"
    )


def _pairs(policy: Policy) -> str:
    pairs = policy.proving.pairs
    if pairs is None:
        return "none: idle nodes are not tried with each other"
    every, look = format_duration(pairs.every), format_duration(pairs.look)
    return (
        f"idle nodes not tried for {every}, looked for every {look}, {pairs.at_once} of one"
        f" {' and '.join(pairs.within) or 'cluster'} at once; who fails with two that did well"
        " with others is odd, and nobody is on the word of one pair"
    )


def _ladder(policy: Policy, terms: FaultTerms) -> Iterator[Line]:
    yield Line(Step.HOLD, "at once: no new work lands on the node")
    if terms.drain or terms.steps:
        yield Line(Step.TOLERATE, _stay(terms))
        yield Line(Step.LEASE, _lease(policy))
        yield Line(Step.DRAIN, _drain(terms.drain))
    yield from _steps(policy, terms)
    if terms.steps:
        yield Line(Step.VERIFY, _verify(policy, terms))
        yield Line(Step.RELEASE, "once verified: the hold is taken off and the lease given back")
        yield Line(Step.PROBATION, _probation(policy, terms))
    yield Line(Step.HAND_OFF, _hand_off(terms))


def _stay(terms: FaultTerms) -> str:
    if not terms.tolerate:
        return "no time: jobs are to leave at once"
    stay = f"jobs may stay {format_duration(terms.tolerate)} from the first sight of the fault"
    sooner = "; sooner if no job uses the node's GPUs" if terms.sooner_if_idle else ""
    recovers = "if it heals meanwhile, the incident ends as recovered"
    heals = recovers if terms.may_recover else "healing meanwhile does not end the incident"
    return f"{stay}{sooner}; {heals}"


def _lease(policy: Policy) -> str:
    most = ", ".join(_budget(each) for each in policy.budgets)
    wait = format_duration(policy.limits.lease_wait)
    return f"waits at most {wait} for the disruption budget: {most}"


def _budget(budget: Budget) -> str:
    where = "of the cluster" if budget.scope == CLUSTER else f"in each {budget.scope}"
    return f"{budget.max} {where}"


def _drain(drain: Drain | None) -> str:
    if drain is None:
        return "none: the node does not answer, its pods cannot leave"
    most = format_duration(drain.deadline)
    return f"pods are evicted within {most} of the lease; {_AFTER[drain.after_deadline]}"


def _steps(policy: Policy, terms: FaultTerms) -> Iterator[Line]:
    window = format_duration(terms.attempts.window)
    for index, step in enumerate(terms.steps):
        most = format_duration(getattr(policy.limits, step.value.replace("-", "_")))
        tries = terms.attempts.of(step)
        often = f"{'once' if tries == 1 else f'{tries} times'} in {window}"
        words = f"takes at most {most}; at most {often} on the same machine and part"
        when = "if that does not help: " if index else ""
        yield Line(step, f"{when}{words}{_approval(policy, step)}")


def _approval(policy: Policy, step: Step) -> str:
    approval = policy.approval(step)
    if approval is None:
        return ""
    return f"; waits {format_duration(approval.expires)} for a person's yes, and no answer is a no"


def _verify(policy: Policy, terms: FaultTerms) -> str:
    checks = ", ".join(terms.verify.checks)
    settle, most = format_duration(terms.verify.settle), format_duration(policy.limits.verify)
    return f"after each step: {checks} pass and it is quiet for {settle}; takes at most {most}"


def _probation(policy: Policy, terms: FaultTerms) -> str:
    back = f"a fault that comes back goes on one step higher, {policy.limits.recurrences} times"
    return f"watched for {format_duration(terms.probation)}; {back}"


def _hand_off(terms: FaultTerms) -> str:
    then = "once it is empty" if terms.drain else "now"
    when = "if the last step does not help or a limit is reached" if terms.steps else then
    return f"{when}: the hold stays, and a person is told what is needed"


def _wrapped(line: Line) -> str:
    return "\n".join(
        wrap(
            line.words,
            _WIDTH,
            initial_indent=f"  {line.step.value:<11}",
            subsequent_indent=" " * 13,
            break_on_hyphens=False,
        )
    )
