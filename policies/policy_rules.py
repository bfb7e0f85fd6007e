"""What a policy as a whole may not say although each part is right: one function a rule.

As in `fault_rules`; here `needs` are paths, with `*` for any one step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from fleet.step import Step
from policies.durations import format_duration
from policies.limit_terms import TOLD_EVERY
from policies.mistakes import Complaint
from policies.schema import Policy
from policies.scopes import JOB


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule over the whole policy."""

    check: Callable[[Policy], Iterator[Complaint]]
    needs: tuple[str, ...] = ()


def budget_scopes_are_unique(policy: Policy) -> Iterator[Complaint]:
    """Two maxima for one scope: which is meant?"""
    seen: set[str] = set()
    for index, budget in enumerate(policy.budgets):
        if budget.scope in seen:
            what = f"there is a budget for {budget.scope} already"
            yield Complaint(("budgets", index, "scope"), what, "keep the one that you mean")
        seen.add(budget.scope)


def the_breaker_counts_nodes(policy: Policy) -> Iterator[Complaint]:
    """A job is not a set of nodes that stays the same while it is judged."""
    if policy.breaker.scope == JOB:
        what = "the breaker judges nodes that stay together, and a job's do not"
        yield Complaint(("breaker", "scope"), what, "write pool, rack or cluster")


def approvals_are_unique(policy: Policy) -> Iterator[Complaint]:
    """Two approvals for one step."""
    seen: set[Step] = set()
    for index, approval in enumerate(policy.approvals):
        if approval.step in seen:
            what = f"there is an approval for {approval.step.value} already"
            yield Complaint(("approvals", index, "step"), what, "keep the one that you mean")
        seen.add(approval.step)


def approvals_are_for_used_steps(policy: Policy) -> Iterator[Complaint]:
    """An approval for a step that no fault takes is a slip in one of the two places."""
    used = {step for terms in policy.faults.values() for step in terms.steps}
    for index, approval in enumerate(policy.approvals):
        if approval.step not in used:
            what = f"no fault lists the step {approval.step.value}"
            yield Complaint(("approvals", index, "step"), what, "take the approval out")


def signals_are_unique(policy: Policy) -> Iterator[Complaint]:
    """The first that matches counts, so a second with the same pattern is never reached."""
    seen: set[tuple[str, ...]] = set()
    for index, signal in enumerate(policy.signals):
        key = (signal.type, signal.status, signal.reason)
        if key in seen:
            what = "a signal above has the same type, status and reason, and the first counts"
            yield Complaint(("signals", index), what, "keep the one that you mean")
        seen.add(key)


def signals_mean_listed_faults(policy: Policy) -> Iterator[Complaint]:
    """A fault without terms is held and handed over, which is hardly why a signal was written."""
    for index, signal in enumerate(policy.signals):
        if signal.fault not in policy.faults:
            what = f"nothing under faults says what to do about {signal.fault.value}"
            remedy = f"add {signal.fault.value} to faults"
            yield Complaint(("signals", index, "fault"), what, remedy)


def verify_has_time_to_settle(policy: Policy) -> Iterator[Complaint]:
    """A verify waits for its node to settle within its own limit."""
    for name, terms in policy.faults.items():
        if terms.steps and terms.verify.settle >= policy.limits.verify:
            most = format_duration(policy.limits.verify)
            what = f"settling takes the whole of limits.verify, which is {most}"
            yield Complaint(
                ("faults", name.value, "verify", "settle"), what, "shorten it, or raise the limit"
            )


def facts_have_time_to_come(policy: Policy) -> Iterator[Complaint]:
    """An incident that waits less than the watcher takes to tell hands over a node that is well."""
    if policy.limits.unknown_wait < TOLD_EVERY:
        often = format_duration(TOLD_EVERY)
        what = f"the watcher tells of a node once in {often}: one that is well would be handed over"
        yield Complaint(("limits", "unknown_wait"), what, f"write 30m, or at least {often}")


def a_sweep_looks_before_nodes_are_due_again(policy: Policy) -> Iterator[Complaint]:
    """Looked for more seldom than due, idle nodes are proven later than the policy says."""
    sweep = policy.proving.sweep
    if sweep and not sweep.look < sweep.every:
        what = f"idle nodes are due again after {format_duration(sweep.every)}, and not looked for"
        yield Complaint(("proving", "sweep", "look"), what, "shorten it, or raise every")


def a_sweep_rests_between_looks(policy: Policy) -> Iterator[Complaint]:
    """Each look lists every node, and a schedule of seconds leaves none of them in peace."""
    sweep = policy.proving.sweep
    if sweep and sweep.look < SHORTEST_LOOK:
        what = f"a look more often than every {format_duration(SHORTEST_LOOK)} is none"
        yield Complaint(("proving", "sweep", "look"), what, "write 1h, or at least a minute")


def pairs_are_looked_for_before_nodes_are_due_again(policy: Policy) -> Iterator[Complaint]:
    """As for a sweep."""
    pairs = policy.proving.pairs
    if pairs and not pairs.look < pairs.every:
        what = f"idle nodes are due again after {format_duration(pairs.every)}, and not looked for"
        yield Complaint(("proving", "pairs", "look"), what, "shorten it, or raise every")


def a_trial_has_time(policy: Policy) -> Iterator[Complaint]:
    """Libraries alone take a minute to load, and two Pods that hang must end within a look."""
    pairs = policy.proving.pairs
    if pairs and not SHORTEST_ADDING_UP <= pairs.add_up <= LONGEST_ADDING_UP:
        least, most = map(format_duration, (SHORTEST_ADDING_UP, LONGEST_ADDING_UP))
        what = f"adding up is given {format_duration(pairs.add_up)}"
        yield Complaint(("proving", "pairs", "add_up"), what, f"write {least} to {most}")
    if pairs and pairs.look < SHORTEST_TRIAL:
        what = f"a trial takes longer than {format_duration(pairs.look)}"
        yield Complaint(("proving", "pairs", "look"), what, "write 6h, or at least 10m")


SHORTEST_LOOK = timedelta(minutes=1)
SHORTEST_ADDING_UP, LONGEST_ADDING_UP = timedelta(seconds=10), timedelta(minutes=30)
SHORTEST_TRIAL = timedelta(minutes=10)

POLICY_RULES = (
    PolicyRule(budget_scopes_are_unique),
    PolicyRule(the_breaker_counts_nodes),
    PolicyRule(approvals_are_unique),
    PolicyRule(approvals_are_for_used_steps, needs=("faults.*.steps",)),
    PolicyRule(signals_are_unique),
    PolicyRule(signals_mean_listed_faults, needs=("faults.*",)),
    PolicyRule(verify_has_time_to_settle, needs=("limits.verify",)),
    PolicyRule(facts_have_time_to_come, needs=("limits.unknown_wait",)),
    PolicyRule(a_sweep_looks_before_nodes_are_due_again, needs=("proving.sweep",)),
    PolicyRule(a_sweep_rests_between_looks, needs=("proving.sweep",)),
    PolicyRule(pairs_are_looked_for_before_nodes_are_due_again, needs=("proving.pairs",)),
    PolicyRule(a_trial_has_time, needs=("proving.pairs",)),
)
