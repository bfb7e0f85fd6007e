"""What the terms of one fault may not say although each word is right: one function a rule.

A rule names a place, what contradicts what, and the way out. `needs` says which fields must be
readable, lest a mistake in one of them make the rule complain in vain.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fleet.fault import FaultName
from fleet.step import REPAIRS, Step
from policies.durations import format_duration
from policies.fault_terms import AfterDeadline, FaultTerms
from policies.mistakes import Complaint, Path


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A rule over one fault's terms; `needs` are names of fields."""

    check: Callable[[FaultName, FaultTerms], Iterator[Complaint]]
    needs: tuple[str, ...] = ()


def steps_climb(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """A ladder goes from mild to harsh, each step once."""
    for index, (before, step) in enumerate(zip(terms.steps, terms.steps[1:], strict=False), 1):
        if REPAIRS.index(step) <= REPAIRS.index(before):
            order = ", ".join(each for each in REPAIRS if each in terms.steps)
            what = f"{step.value} comes after {before.value}, but steps go from mild to harsh"
            yield Complaint(_at(name, "steps", index), what, f"write [{order}]")


def steps_need_a_hold(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Nothing is repaired under running admissions of new work."""
    if not terms.hold and terms.steps:
        what = "hold is no, yet steps are listed: new work would land on a node under repair"
        yield Complaint(_at(name, "hold"), what, "write hold: yes, or steps: []")


def drains_need_a_hold(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """A drain without a hold fills up again."""
    if not terms.hold and not terms.steps and terms.drain:
        what = "hold is no, yet there is a drain: the node would fill up again"
        yield Complaint(_at(name, "drain"), what, "write hold: yes, or drain: none")


def steps_need_a_drain(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Only a node that does not answer is repaired undrained, since it cannot be drained."""
    if terms.steps and not terms.drain and name is not FaultName.HOST_UNREACHABLE:
        what = "steps are listed, yet drain is none: jobs would be hit without a warning"
        yield Complaint(_at(name, "drain"), what, "write drain: {deadline: 30m}")


def an_unreachable_node_is_not_drained(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Its kubelet does not answer: pods cannot leave, and no Pod of ours can start."""
    if name is FaultName.HOST_UNREACHABLE and terms.drain:
        what = "a node that does not answer cannot be drained"
        yield Complaint(_at(name, "drain"), what, "write drain: none")
    if name is FaultName.HOST_UNREACHABLE and Step.RESET_GPU in terms.steps:
        what = "a GPU reset runs on the node, and this node does not answer"
        place = _at(name, "steps", terms.steps.index(Step.RESET_GPU))
        yield Complaint(place, what, "write [reboot, replace]")


def force_is_for_emergencies(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Where jobs may stay for a while, there is time to ask."""
    forced = terms.drain and terms.drain.after_deadline is AfterDeadline.FORCE
    if forced and terms.tolerate:
        what = f"jobs may stay for {format_duration(terms.tolerate)}, and are then killed by force"
        remedy = "write after_deadline: ask, or tolerate: 0s"
        yield Complaint(_at(name, "drain", "after_deadline"), what, remedy)


def steps_need_checks(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Without a check nothing proves the repair."""
    if terms.steps and not terms.verify.checks:
        what = "steps are listed, yet nothing checks whether they helped"
        yield Complaint(_at(name, "verify", "checks"), what, "write checks: [kernel-log, presence]")


def idling_needs_a_tolerance(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """Sooner than at once there is nothing."""
    if terms.sooner_if_idle and not terms.tolerate:
        what = "sooner_if_idle has no meaning while tolerate is 0s"
        yield Complaint(_at(name, "sooner_if_idle"), what, "write no, or a longer tolerate")


def attempts_are_for_listed_steps(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """A number for a step that is never taken is a slip in one of the two places."""
    for step in REPAIRS:
        written = step.value.replace("-", "_") in terms.attempts.model_fields_set
        if written and step not in terms.steps:
            what = f"attempts are given for {step.value}, which is not among the steps"
            yield Complaint(
                _at(name, "attempts", step), what, f"add {step.value} to steps, or drop it"
            )


def some_faults_are_not_the_nodes(name: FaultName, terms: FaultTerms) -> Iterator[Complaint]:
    """An application error is its job's, a silent agent the sensor's, an unknown code nobody's."""
    harmless: dict[FaultName, tuple[tuple[Step, ...], str]] = {
        FaultName.APPLICATION: ((Step.END_JOB,), "an application error is its job's"),
        FaultName.MONITOR_SILENT: ((), "a silent agent says nothing about the node"),
        FaultName.UNKNOWN_CODE: ((), "a code that nobody knows justifies a hold and no harm"),
        FaultName.CONFIG_MISMATCH: ((), "a mismatch usually means that an upgrade is under way"),
    }
    allowed, why = harmless.get(name, (REPAIRS, ""))
    for index, step in enumerate(terms.steps):
        if step not in allowed:
            yield Complaint(_at(name, "steps", index), f"{why}, so no {step.value}", "take it out")


FAULT_RULES = (
    FaultRule(steps_climb),
    FaultRule(steps_need_a_hold),
    FaultRule(drains_need_a_hold, needs=("steps", "drain")),
    FaultRule(steps_need_a_drain),
    FaultRule(an_unreachable_node_is_not_drained, needs=("drain",)),
    FaultRule(force_is_for_emergencies, needs=("tolerate",)),
    FaultRule(steps_need_checks, needs=("verify",)),
    FaultRule(idling_needs_a_tolerance),
    FaultRule(attempts_are_for_listed_steps, needs=("steps",)),
    FaultRule(some_faults_are_not_the_nodes),
)


def _at(name: FaultName, *rest: str | int) -> Path:
    return ("faults", name.value, *rest)
