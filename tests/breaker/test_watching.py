"""Breaker and cap in a whole watcher, over real HTTP."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.fault import FaultName
from fleet.mark import MarkState
from fleet.names import LEASES, NAMESPACE
from fleet.node import Condition
from fleet.ports import PatchType
from intake.admission import starting, worst
from intake.breaker_record import PATH
from intake.cap import Cap
from intake.member import Beheld, Member, member_of
from intake.muster import Muster
from simulator.apiserver.injection import Fault
from tests.intake.cases import HOLD, NOW, PlainRules, a_fault, a_mark, a_node, a_report, later
from tests.intake.world import QUICK, SICK

POOL = {"gpumend.io/pool": "x"}
SOON = replace(
    QUICK,
    breaker_look_every=timedelta(seconds=0.05),
    breaker_rest=timedelta(seconds=0.02),
    newborn_for=timedelta(seconds=0),
)


async def held(world, count):
    found = [await world.node(f"n{number}") for number in range(count)]
    return [each.identity.name for each in found if each.hold]


async def test_a_pool_that_turns_red_is_held_up_to_the_share_and_told_once(world, caplog):
    storms = []

    async def announce(storm):
        storms.append(storm)

    for number in range(10):
        await world.add_node(f"n{number}", labels=POOL, ready="True")
        notes = {"gpumend.io/agent-version": "1.2.0"}
        metadata = {"name": f"agent-n{number}", "namespace": NAMESPACE, "annotations": notes}
        await world.api.create(LEASES, {"metadata": metadata, "spec": {}})
    async with world.watching(settings=SOON, announce=announce) as watcher:
        await world.until(lambda: watcher.term and watcher.term.leases.synced.is_set())
        for number in range(10):
            await world.say(f"n{number}", SICK, ready="True")
        await world.until(lambda: len(storms) == 1)
        await world.swept(watcher)
    assert len(await held(world, 10)) <= 3
    (storm,) = storms
    assert "fault gpu-lost" in storm.cause
    assert "code xid:79" in storm.cause
    assert "agent 1.2.0" in storm.cause


async def test_an_open_breaker_outlives_the_leader_and_a_person_closes_it(world):
    for number in range(6):
        await world.add_node(f"n{number}", SICK, labels=POOL, ready="True")
    async with world.watching(settings=SOON) as watcher:
        await world.until(lambda: watcher.term and watcher.term.breaker.circuits)
    for number in (3, 4, 5):
        await world.say(f"n{number}", ready="True")
    record = (await world.api.get(PATH))["data"]["pool.x"]
    assert json.loads(record)["phase"] == "open"
    async with world.watching(settings=SOON) as watcher:
        await world.until(lambda: watcher.term and watcher.term.breaker.circuits)
        assert not await held(world, 6)
        order = json.dumps({"actor": "kim", "reason": "seen"})
        body = {"data": {"close.pool.x": order}}
        await world.api.patch(PATH, body, PatchType.MERGE)
        await world.until(lambda: len(world.patches()) == 1)
        world.clock.skip(seconds=30)
        await world.until(lambda: len(world.patches()) == 2)


async def test_without_the_right_to_read_it_nothing_is_held_and_the_log_says_why(world, caplog):
    refusal = Fault("get", "/configmaps/gpumend-breaker", times=3, code=403, reason="Forbidden")
    world.server.faults.order(refusal)
    await world.add_node("n1", SICK, labels=POOL, ready="True")
    async with world.watching(settings=SOON):
        await world.marked("n1", MarkState.PENDING)
    assert caplog.text.count("did=cannot-read-breaker") == 1
    assert "deploy/engine-rbac.yaml" in caplog.text
    assert "did=not-held node=n1 because=breaker-unread" in caplog.text


async def test_a_small_pool_is_never_held_bare(world):
    for number in range(3):
        await world.add_node(f"n{number}", SICK, labels=POOL, ready="True")
    async with world.watching(settings=SOON) as watcher:
        await world.until(lambda: len(world.patches()) == 2)
        await world.swept(watcher)
        assert len(await held(world, 3)) == 2
        await world.add_node("n3", labels=POOL, ready="True")
        await world.until(lambda: len(world.patches()) == 3)


def serving(*names):
    muster = Muster()
    for name in ("n1", "n2", "n3"):
        muster.put(name, Member("pool/x", serves=name in names))
    return muster


@pytest.mark.parametrize(
    ("serves", "busy", "may"),
    [
        (("n1", "n2"), (), True),
        (("n1",), (), False),
        (("n1", "n2"), ("n2",), False),
        (("n1", "n2", "n3"), ("n2",), True),
        ((), (), True),
    ],
)
def test_the_last_node_that_serves_stays_and_one_that_serves_nobody_may_be_held(serves, busy, may):
    cap = Cap(serving(*serves), lambda name: name in busy)
    assert (cap.gate(a_node(), a_report()) == "") is may


def ready(status, reason=""):
    return (Condition("Ready", status, reason, ""),)


@pytest.mark.parametrize(
    ("conditions", "age", "is_starting"),
    [
        ((), 1, True),
        (ready("False", "KubeletNotReady"), 1, True),
        (ready("Unknown", "NodeStatusNeverUpdated"), 1, True),
        (ready("Unknown", "NodeStatusUnknown"), 1, False),
        (ready("True"), 1, False),
        (ready("False"), 11, False),
    ],
)
def test_that_a_node_which_is_just_born_is_not_ready_yet_is_no_fault(conditions, age, is_starting):
    node = a_node(conditions=conditions, created=later(minutes=-age))
    young = starting(node, NOW, timedelta(minutes=10))
    assert young is is_starting
    lost = a_fault(FaultName.HOST_UNREACHABLE, "host")
    assert worst(a_report(lost), PlainRules(), young) == (None if is_starting else lost)
    assert worst(a_report(lost, SICK), PlainRules(), young) is not None


@pytest.mark.parametrize(
    ("node", "handed_off", "sick", "waits"),
    [
        (a_node(), False, True, True),
        (a_node(pause="rewired"), False, False, False),
        (a_node(labels={"gpumend.io/managed": "false"}), False, False, False),
        (a_node(cool_down=later(hours=1)), False, False, False),
        (a_node(a_mark(), [HOLD]), False, True, False),
        (a_node(a_mark(MarkState.OWNED), [HOLD]), False, True, False),
        (a_node(a_mark(MarkState.OWNED), [HOLD]), True, False, False),
        (a_node(a_mark(MarkState.OWNED)), False, True, False),
        (a_node(a_mark(MarkState.PROBATION)), False, False, False),
        (a_node(taints=[HOLD]), False, True, False),
    ],
)
def test_an_open_incident_counts_and_so_does_one_that_would_be_open(node, handed_off, sick, waits):
    beheld = Beheld(SICK, (0, NOW, "n1"), handed_off, NOW)
    member = member_of(node, {"pool": "x"}, "pool", beheld)
    assert (member.scope, member.sick, member.waits) == ("pool/x", sick, waits)


def test_a_machine_that_came_back_as_a_new_node_was_not_just_born():
    beheld = Beheld(None, (0, NOW, "n1"), False, NOW)
    back = a_node(a_mark(opened=later(hours=-1)), [HOLD], created=later(minutes=-1))
    assert member_of(back, {}, "pool", beheld).born is None
    assert member_of(a_node(created=NOW), {}, "pool", beheld).born == NOW
