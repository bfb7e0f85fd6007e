"""Each row of the table of faults (`tests/policy/faults.md`), led through the shipped policy.

The course is a whole incident in virtual time: one fault, every means, nothing helps, and a person
who says yes. What is expected is read from the row's own words.
"""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fleet.check import Check
from fleet.decision import Ask, Close, HandOff, Wait
from fleet.fault import Advice, Fault, FaultName
from fleet.incident import End
from fleet.order import Order, Verb
from fleet.part import Part
from fleet.request import StepRequest
from fleet.step import REPAIRS, Means, Step
from policies.document import default_policy
from probes.evidence import Claim, driver_verdict
from tests.incidents.virtual import START, World, a_fault, play
from tests.policy.test_default import ROWS, as_duration

PARTS = {"GPU": "gpu:3", "Memory": "gpu:3", "Fabric": "nvlink:3/1", "Network": "nic:eth0"}
MINUTES = timedelta(minutes=3)
"""For the hold, the recall, our own check and a person's yes before the lease."""
BY_IDLENESS = ("contained-memory", "inforom")
"""Rows without a drain time of their own: the node is empty by then; the policy has a limit."""


@dataclass
class Consenting(World):
    """A world in which a person says yes a minute after the question."""

    async def wait(self, decision, until):
        if isinstance(decision, Ask) and decision.id:
            self.now += timedelta(minutes=1)
            yes = Order(Verb.APPROVE, "ada", "yes", self.now, decision.id)
            self.arrived.append(yes)
        else:
            await super().wait(decision, until)


def led(*faults: Fault, means: tuple[Means, ...] = tuple(Means)) -> World:
    there = tuple(each for each in means if each is not Means.LAUNCH)
    return play(Consenting(default_policy(), faults, means=there))


def asked(world: World, step: Step) -> list[StepRequest]:
    return [each.request for each in world.performed if each.request.step is step]


def repairs(world: World) -> list[str]:
    steps = (each.request.step for each in world.performed)
    return [each.value for each in steps if each in REPAIRS]


def leased(world: World) -> timedelta | None:
    leases = (each.basis.at for each in world.performed if each.request.step is Step.LEASE)
    first = next(leases, None)
    return None if first is None else first - START


def fault_of(row: list[str]) -> Fault:
    return a_fault(PARTS.get(row[1], "host" if row[1] == "Host" else "gpu:3"), row[0])


def ids(row: list[str]) -> str:
    return row[0]


HELD = [row for row in ROWS if row[3] != "-"]


@pytest.mark.parametrize("row", [row for row in ROWS if row[3] == "-"], ids=ids)
def test_a_fault_that_is_not_the_nodes_moves_nothing(row):
    world = led(fault_of(row))
    assert {each.request.step for each in world.performed} <= {Step.HOLD, Step.RELEASE, Step.CLOSE}
    assert isinstance(world.decisions[-1], Close)


@pytest.mark.parametrize("row", HELD, ids=ids)
def test_the_node_is_held_first_and_jobs_stay_as_long_as_the_row_says(row):
    name, stay = row[0], row[3]
    world = led(fault_of(row))
    assert world.performed[0].request.step is Step.HOLD
    terms = default_policy().fault(FaultName(name))
    allowed = as_duration(stay) if stay != "hold only" else terms.tolerate
    begins = leased(world)
    if begins is None:
        assert not terms.steps
        assert terms.drain is None
    else:
        assert allowed <= begins < allowed + MINUTES


def test_a_successor_that_takes_its_time_takes_none_from_the_pods():
    fault = a_fault("gpu:3", "memory-exhausted")
    world = play(Consenting(default_policy(), (fault,), means=tuple(Means)))
    assert world.incident is not None
    ready = next(each.ended for each in world.incident.attempts if each.step is Step.LAUNCH)
    (drain,) = asked(world, Step.DRAIN)
    terms = default_policy().fault(fault.name).drain
    assert terms is not None
    assert drain.deadline == ready + terms.deadline


@pytest.mark.parametrize("row", HELD, ids=ids)
def test_the_drain_ends_when_the_row_says_counted_from_the_lease(row):
    name, within = row[0], row[4]
    world = led(fault_of(row))
    drains, begins = asked(world, Step.DRAIN), leased(world)
    if re.match(r"\d", within):
        assert begins is not None
        assert drains[0].deadline - START - begins <= as_duration(within) + timedelta(seconds=1)
        assert drains[0].deadline - START - begins >= as_duration(within)
    else:
        assert bool(drains) is (name in BY_IDLENESS)


@pytest.mark.parametrize("row", HELD, ids=ids)
def test_the_steps_come_in_the_rows_order_and_its_last_word_ends_it(row):
    listed = [word.split(" ")[0] for word in row[5].split(", ")]
    steps = [each for each in listed if each in REPAIRS]
    world = led(fault_of(row))
    assert repairs(world) == steps
    last = world.decisions[-1]
    if "replace" in steps:
        assert isinstance(last, Close)
        assert last.end is End.REPLACED
    else:
        assert isinstance(last, HandOff)
        assert any(row[0] in need for need in last.needs)


@pytest.mark.parametrize("row", HELD, ids=ids)
def test_a_person_is_asked_before_a_machine_is_given_back_and_for_nothing_else(row):
    world = led(fault_of(row))
    questions = [each for each in world.decisions if isinstance(each, Ask)]
    assert [each.id.split("-")[0] for each in questions] == ["replace"] * ("replace" in row[5])


@pytest.mark.parametrize("row", [row for row in HELD if row[3] not in ("0", "hold only")], ids=ids)
def test_what_heals_within_its_time_is_given_back_untouched(row):
    world = Consenting(default_policy(), (fault_of(row),))
    world.at(30, _heals)
    play(world)
    assert world.decisions[-1].end is End.RECOVERED  # type: ignore[union-attr]
    assert not asked(world, Step.LEASE)


def _heals(world: World):
    world.faults = ()
    return world.report()


@pytest.mark.parametrize("name", BY_IDLENESS)
def test_a_repair_at_leisure_begins_when_no_job_uses_the_gpus(name):
    world = Consenting(default_policy(), (a_fault("gpu:3", name),), means=(Means.INSIDE,))
    world.busy = False
    play(world)
    ran = [each.request.step for each in world.performed]
    assert ran[:3] == [Step.HOLD, Step.IDLE, Step.RECALL]
    assert (world.performed[2].basis.at - START) < timedelta(minutes=1)


def test_wrong_results_are_not_released_by_a_pass_alone():
    world = Consenting(default_policy(), (a_fault("gpu:3", "wrong-results"),))
    world.at(5, _heals)
    play(world)
    assert isinstance(world.decisions[-1], HandOff)
    assert not asked(world, Step.RELEASE)


@pytest.mark.parametrize(
    ("name", "before"), [("uncontained-memory", False), ("wrong-results", True), ("slow", True)]
)
def test_active_checks_wait_for_a_repair_unless_nothing_else_shows_the_fault(name, before):
    terms = default_policy().fault(FaultName(name))
    verify = terms.verify.model_copy(update={"checks": (Check.MEMORY, Check.COMPUTE)})
    changed = terms.model_copy(update={"verify": verify})
    policy = default_policy().model_copy(update={"faults": {FaultName(name): changed}})
    world = play(Consenting(policy, (a_fault("gpu:3", name),), means=tuple(Means)))
    repaired = [each.request.step in REPAIRS for each in world.performed].index(True)
    for number, each in enumerate(world.performed):
        if each.request.step is Step.VERIFY:
            assert Check.MEMORY in each.request.checks
            assert (Check.COMPUTE in each.request.checks) == (before or number > repaired)


@pytest.mark.parametrize(
    ("parts", "reset"),
    [
        (("nvlink:3/1",), ("gpu:3",)),
        (("nvlink:3/1", "nvlink:5/2"), ("gpu:3", "gpu:5")),
    ],
)
def test_a_sick_link_resets_each_end_that_is_known(parts, reset):
    world = led(*(a_fault(part, "nvlink-error", "xid:74") for part in parts))
    resets = asked(world, Step.RESET_GPU)
    assert [each.parts for each in resets] == [tuple(map(Part, reset))]


def test_a_sick_switch_is_no_matter_of_one_gpus_reset():
    world = led(a_fault("nvlink:3/1", "nvlink-error"), a_fault("nvswitch:0", "nvlink-error"))
    assert repairs(world) == ["reboot", "replace"]


def test_a_reset_leaves_other_sick_parts_alone():
    world = led(a_fault("gpu:3", "uncontained-memory"), a_fault("gpu:5", "thermal"))
    assert [each.parts for each in asked(world, Step.RESET_GPU)] == [(Part("gpu:3"),)]


RECOVERY = [
    (1, "firmware-halted", ["reset-gpu", "reboot", "replace"]),
    (2, "driver-hung", ["reboot", "replace"]),
    (3, "nvlink-error", ["reset-gpu", "reboot", "replace"]),
    (4, "firmware-halted", ["reset-gpu", "reboot", "replace"]),
    (5, "fabric-not-ready", []),
    (6, "gpu-lost", ["reboot", "replace"]),
    (7, "driver-hung", ["reboot", "replace"]),
    (99, "unknown-code", []),
]
"""The second table: Xid 154 and NVML's recovery action, by value."""


@pytest.mark.parametrize(("value", "fault", "steps"), RECOVERY)
def test_what_the_driver_wants_is_done_by_value(value, fault, steps):
    claim = driver_verdict(Part("gpu:3"), value, "xid:154")
    assert isinstance(claim, Claim)
    assert claim.fault == fault
    world = led(a_fault("gpu:3", claim.fault, "xid:154", claim.advice))
    assert repairs(world) == steps
    drained = bool(asked(world, Step.DRAIN))
    assert drained is bool(steps)
    if not steps:
        assert isinstance(world.decisions[-1], HandOff)


@pytest.mark.parametrize("advice", [Advice.RESET_GPU, Advice.REBOOT, Advice.REPLACE])
def test_advice_skips_forward_and_never_back(advice):
    ladder = ["reset-gpu", "reboot", "replace"]
    world = led(a_fault("gpu:3", "uncontained-memory", "xid:95", advice))
    assert repairs(world) == ladder[ladder.index(advice) :]


def test_of_several_faults_the_shortest_time_and_the_worst_ladder_count():
    world = led(a_fault("gpu:3", "slow"), a_fault("nic:eth0", "nic-missing"))
    begins = leased(world)
    assert begins is not None
    assert timedelta(minutes=1) <= begins < timedelta(minutes=1) + MINUTES
    assert repairs(world) == ["reboot", "replace"]


def test_each_fault_has_its_own_clock_from_its_own_first_sight():
    """The link has its two minutes from when it was seen, not from the opening."""
    world = Consenting(default_policy(), (a_fault("gpu:3", "thermal"),))
    link = a_fault("nvlink:5/1", "nvlink-error")

    def breaks(world: World):
        world.faults = (*world.faults, link)
        return world.report()

    world.at(300, breaks)
    play(world)
    waits = [each.until - START for each in world.decisions if isinstance(each, Wait)]
    assert waits[:2] == [timedelta(minutes=15), timedelta(minutes=7)]


def test_r03_a_monitor_that_fails_is_no_sick_gpu():
    """DCGM that does not answer is translated to `monitor-silent`, which moves nothing."""
    signals = default_policy().signals
    found = (s for s in signals if s.matches("AcceleratedHardwareReady", "False", "DCGMError"))
    name = next(found).fault
    assert name is FaultName.MONITOR_SILENT
    world = led(replace(a_fault("host", name), code="condition:AcceleratedHardwareReady=False"))
    assert {each.request.step for each in world.performed} <= {Step.HOLD, Step.RELEASE, Step.CLOSE}


def test_a_fault_of_no_table_is_held_and_handed_over():
    """What no agent of ours knows arrives as `unknown-code`; a policy without it says the same."""
    world = led(a_fault("gpu:3", "unknown-code", "xid:999"))
    assert [each.request.step for each in world.performed] == [Step.HOLD]
    assert isinstance(world.decisions[-1], HandOff)
