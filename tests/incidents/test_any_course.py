"""Whatever happens to a node, in whatever order, what the ladder promises holds."""

from collections import deque
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.decision import Act, Ask, Close, HandOff
from fleet.fault import FaultName
from fleet.incident import Attempt, End
from fleet.order import Verb
from fleet.outcome import Outcome, OutcomeKind, PastAttempt
from fleet.part import Part
from fleet.step import REPAIRS, Step
from policies.ladder import On
from policies.reading import read_outcome
from tests.incidents.scenario import build
from tests.incidents.virtual import START, Script, World, play

HARMFUL = (Step.LAUNCH, Step.DRAIN, *REPAIRS)
FAULTS = (
    "gpu:3 uncontained-memory",
    "gpu:1 gpu-lost",
    "nvlink:3/1 nvlink-error",
    "gpu:3 contained-memory",
    "host thermal",
    "host host-unreachable",
    "gpu:0 driver-hung x reboot",
    "nic:eth0 nic-degraded",
    "gpu:2 memory-exhausted",
    "gpu:4 wrong-results",
    "gpu:6 slow",
)
HAPPENINGS = (
    *(f"fault {each}" for each in FAULTS),
    *("clear", "report", "silent", "speaks", "unknown condition gpumend.io/GPU", "rebooted"),
    *("rebooted healing", "granted", "gone", "missed", "back u2", "back u3"),
    *("idle", "answers", "recants"),
    *("hold removed", "mark removed", "pause ada why", "resume ada why"),
    *("cancel ada why", "release ada why", "approve ada why", "deny ada why", "skip ada why"),
)
OUTCOMES = (
    *("heals", "succeeds", "transient", "permanent", "ambiguous", "cancelled", "superseded"),
    *("transient queued", "cancelled paused", "cancelled premise-gone", "cancelled fault-stands"),
    *("cancelled hold-removed", "cancelled unmanaged", "permanent deadline"),
)
STEPS = [step for step in Step if step not in (Step.TOLERATE, Step.PROBATION, Step.HAND_OFF)]

faults = st.lists(st.sampled_from(FAULTS), max_size=3, unique=True)
happenings = st.lists(st.tuples(st.integers(0, 7200), st.sampled_from(HAPPENINGS)), max_size=12)
scripts = st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(OUTCOMES)), max_size=15)
means = st.sets(st.sampled_from(["provider", "power", "launch", "replace"]))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    policy = draw(st.sampled_from(["short", "asking"]))
    lines = [f"policy {policy}", *(f"fault {each}" for each in draw(faults))]
    lines += [f"means {' '.join(['inside', *sorted(draw(means))])}"]
    lines += [f"at {at}s {what}" for at, what in draw(happenings)]
    lines += [f"{step} {how}" for step, how in draw(scripts)]
    return build("\n".join(lines))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_any_course_keeps_what_the_ladder_promises(world):
    play(world)
    _ends_or_waits_for_a_person(world)
    _harm_needs_hold_lease_memory_and_proof(world)
    _the_lease_is_back(world)
    _what_needs_a_yes_had_one(world)
    _nobody_keeps_a_lease_while_a_person_thinks(world)
    _recovered_means_that_nothing_was_repaired(world)


def _ends_or_waits_for_a_person(world: World) -> None:
    assert isinstance(world.decisions[-1], Close | HandOff), "\n".join(world.transcript)


def _harm_needs_hold_lease_memory_and_proof(world: World) -> None:
    seen: list[tuple[Step, On]] = []
    for attempt in world.incident.attempts if world.incident else ():
        if attempt.ours and attempt.step in HARMFUL:
            _allowed(attempt, seen)
        on = read_outcome(attempt.step, attempt.outcome)
        seen.append((attempt.step, on))
        if attempt.outcome.gave_back:
            seen.append((Step.GIVE_BACK, On.DONE))


def _allowed(attempt: Attempt, before: list[tuple[Step, On]]) -> None:
    """Written without a look at the ladder: walk back to what must have been there.

    A node that does not answer can be neither looked at nor drained.
    """
    step = attempt.step
    assert (Step.RECALL, On.DONE) in before
    assert _last(before, Step.LEASE, On.DONE) > _last(before, Step.GIVE_BACK, On.DONE)
    if any(each.name is FaultName.HOST_UNREACHABLE for each in attempt.request.faults):
        assert step is not Step.RESET_GPU
        return
    since_hold = before[_last(before, Step.HOLD, On.DONE) :]
    assert (Step.VERIFY, On.STANDS) in since_hold
    if step not in (Step.DRAIN, Step.LAUNCH, Step.END_JOB):
        assert (Step.DRAIN, On.DONE) in since_hold
        verdicts = [on for each, on in since_hold if each is Step.VERIFY]
        assert verdicts[-1] is On.STANDS


def _last(seen: list[tuple[Step, On]], step: Step, on: On) -> int:
    found = [n for n, each in enumerate(seen) if each == (step, on)]
    return found[-1] if found else -1


def _the_lease_is_back(world: World) -> None:
    """Or giving it back was tried as often as the policy says."""
    acts = [each.request for each in world.performed][::-1]
    lent = [n for n, each in enumerate(acts) if each.step is Step.LEASE]
    if lent:
        assert [each for each in acts[: lent[0]] if each.step is Step.GIVE_BACK or each.lent]


def _what_needs_a_yes_had_one(world: World) -> None:
    """One yes for each, given after the question was put and before the step."""
    asked = {each.step for each in world.policy.approvals}
    incident = world.incident
    for act in world.performed:
        step, at = act.request.step, act.basis.at
        if incident and step in asked:
            ids = {each.id for each in incident.questions if each.at <= at}
            said = [e for e in incident.orders if e.verb is Verb.APPROVE and e.ask in ids]
            assert [e for e in said if e.ask.startswith(f"{step}-") and e.at <= at]


def _nobody_keeps_a_lease_while_a_person_thinks(world: World) -> None:
    """Unless what was begun may still be happening, or giving back was tried in vain."""
    seen = list(world.decisions)
    for number, decision in enumerate(seen):
        if isinstance(decision, Ask) and decision.id:
            acts = [each.request for each in seen[:number] if isinstance(each, Act)]
            back = [n for n, each in enumerate(acts) if each.step is Step.GIVE_BACK or each.lent]
            lent = [n for n, each in enumerate(acts) if each.step is Step.LEASE]
            assert not lent or (back and back[-1] > lent[-1])


def _recovered_means_that_nothing_was_repaired(world: World) -> None:
    last = world.decisions[-1]
    if isinstance(last, Close) and last.end is End.RECOVERED and world.incident:
        done = [e for e in world.incident.attempts if e.outcome.kind is OutcomeKind.SUCCEEDED]
        assert not [each for each in done if each.ours and each.step in HARMFUL[1:]]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["reset-gpu", "reboot"]), st.integers(1, 60))),
    st.sampled_from(["gpu:3", "gpu:3/mig:1", "nvlink:3/0"]),
)
def test_a_step_is_never_tried_more_often_than_the_policy_says(past, part):
    """Whatever was tried before: with it, never above the limit within the window."""
    world = build("policy short\nfault gpu:3 uncontained-memory")
    tried = tuple(
        PastAttempt(Step(step), START - timedelta(days=days), (Part(part),)) for step, days in past
    )
    outcome = Outcome(OutcomeKind.SUCCEEDED, past=tried)
    world.scripts[Step.RECALL] = deque([Script(outcome)])
    play(world)
    for step in (Step.RESET_GPU, Step.REBOOT):
        before = sum(each == step.value and days < 30 for each, days in past)
        ours = sum(each.request.step is step for each in world.performed)
        assert not ours or before + ours <= 2


def test_harm_is_asked_for_by_acts_alone():
    world = play(build("policy short\nfault gpu:3 uncontained-memory\nreset-gpu heals"))
    acts = [each for each in world.decisions if isinstance(each, Act)]
    assert [each.request for each in acts] == [each.request for each in world.performed]
    operations = [each.request.operation for each in acts]
    assert len(set(operations)) == len(operations)


def test_a_lease_that_is_given_back_for_a_pause_leaves_the_node_with_people():
    world = play(build("policy short\nfault gpu:1 gpu-lost\nat 20s pause ada wait for me"))
    back = next(each for each in world.performed if each.request.step is Step.GIVE_BACK)
    assert back.request.makes_way_for is Step.HAND_OFF
