"""The engine does what a person would do with the table in hand: two implementations, compared."""

import re
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.decision import Close
from fleet.outcome import Outcome, OutcomeKind, PastAttempt
from fleet.part import Part
from fleet.step import REPAIRS, Means, Step
from policies.document import default_policy
from tests.incidents.by_hand import Node, Sick, lead
from tests.incidents.test_fault_table import PARTS, Consenting
from tests.incidents.virtual import START, Script, a_fault, play
from tests.policy.test_default import ROWS, as_duration

SERVING = {Step.RECALL, Step.VERIFY, Step.IDLE}
"""What looks and changes nothing: when it is needed is held by `test_any_course`."""
WITH_LIMIT = {"inforom": (7 * 86_400.0, True), "contained-memory": (86_400.0, True)}
"""Rows whose times the policy file gives, since the table says `at idle` or `hold only`."""
MEANS = st.sets(st.sampled_from(["provider", "power", "launch", "replace"]))


def sick(row: list[str], part: str) -> Sick:
    name, _, _, stay, within, steps, _ = row
    seconds, drained = as_duration(stay).total_seconds(), bool(re.match(r"\d", within))
    seconds, drained = WITH_LIMIT.get(name, (seconds, drained))
    listed = [word.split(" ")[0] for word in steps.split(", ")]
    known = [each for each in listed if each in REPAIRS]
    return Sick(part, name, seconds, drained, known, at_leisure=name in WITH_LIMIT)


HELD = [row for row in ROWS if row[3] != "-" and row[0] != "wrong-results"]
"""Without the one that a passed check does not end."""
FAULTS = [
    (row, part)
    for row in HELD
    for part in {PARTS.get(row[1], "gpu:3"), "gpu:5" if row[1] in ("GPU", "Memory") else "host"}
    if (part == "host") == (row[1] == "Host")
]
PAST = st.lists(st.tuples(st.sampled_from(["reset-gpu", "reboot"]), st.just("gpu:3")), max_size=3)


@dataclass
class Body(Consenting):
    """A node whose repairs cure what they are said to cure, and what they reach."""

    cures: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    async def perform(self, act, stop):
        outcome = await super().perform(act, stop)
        cured = self.cures.get(act.request.step, set())
        for each in self.faults if act.request.step in REPAIRS else ():
            link = re.fullmatch(r"nvlink:(\d+)/\d+", each.part)
            gpu = f"gpu:{link[1]}" if link else each.part
            reached = act.request.step is not Step.RESET_GPU or gpu in act.request.parts
            if reached and (each.part, each.name.value) in cured:
                self.faults = tuple(one for one in self.faults if one is not each)
        return outcome


@st.composite
def cases(draw: st.DrawFn):
    chosen = draw(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3, unique_by=str))
    keys = st.sets(st.sampled_from([(part, row[0]) for row, part in chosen]))
    cures = {step: draw(keys) for step in ("reset-gpu", "reboot")}
    return chosen, {"inside", *draw(MEANS)}, cures, draw(PAST)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_the_engine_does_what_a_person_would_do_by_the_table(case):
    chosen, means, cures, past = case
    node = Node([sick(row, part) for row, part in chosen], means, cures, list(past))
    did, end = lead(node)
    world = engine(chosen, means, cures, past)
    shown = "\n".join(world.transcript)
    steps = [each.request.step for each in world.performed]
    assert [each.value for each in steps if each not in SERVING] == did, shown
    last = world.decisions[-1]
    assert (last.end.value if isinstance(last, Close) else last.kind) == end, shown


def engine(chosen, means, cures, past) -> Body:
    faults = tuple(a_fault(part, row[0]) for row, part in chosen)
    sorted_means = tuple(each for each in Means if each.value in means)
    world = Body(default_policy(), faults, means=sorted_means, cures=cures)
    tried = tuple(PastAttempt(Step(step), START, (Part(part),)) for step, part in past)
    world.scripts[Step.RECALL].append(Script(Outcome(OutcomeKind.SUCCEEDED, past=tried)))
    play(world)
    return world
