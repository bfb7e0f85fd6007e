"""From a sick node to a held one and an incident, over real HTTP."""

from dataclasses import replace
from datetime import timedelta

from fleet.fault import FaultName
from fleet.mark import UNDO_TAINT, MarkState
from fleet.names import HOLD_TAINT
from simulator.apiserver.injection import Fault
from tests.intake.cases import PlainRules, a_fault
from tests.intake.world import QUICK, SICK, thermal


def fault_of_the_hold(**trouble):
    return Fault("patch", "/nodes/n1$", **trouble)


async def test_a_sick_node_is_held_and_marked_in_one_patch_and_its_incident_starts(world):
    await world.add_node("n1", SICK)
    async with world.watching():
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
    assert (node.hold.value, node.mark.undo) == ("gpu-lost", (UNDO_TAINT,))
    name, opening, report = world.engine.heard("start")[0]
    assert (name, opening.mark, opening.scopes) == ("n1", node.mark, {"cluster": "c"})
    assert [each.name for each in report.faults] == [FaultName.GPU_LOST]
    assert len(world.patches()) == 1


async def test_a_healthy_node_and_an_application_fault_move_nothing(world):
    await world.add_node("n1")
    await world.add_node("n2", thermal())
    async with world.watching() as watcher:
        await world.marked("n2", MarkState.PENDING)
        await world.swept(watcher)
    assert [each["objectRef"]["name"] for each in world.patches()] == ["n2"]


async def test_cordons_and_taints_of_others_survive_our_hold(world):
    theirs = {"key": "team", "value": "x", "effect": "NoSchedule"}
    await world.add_node("n1", SICK, unschedulable=True, taints=[theirs])
    async with world.watching():
        node = await world.marked("n1", MarkState.PENDING)
    assert node.unschedulable
    assert {each.key for each in node.taints} >= {"team", HOLD_TAINT}


async def test_a_gate_that_says_no_keeps_a_node_from_being_held(world):
    await world.add_node("n1", SICK)
    reasons = ["breaker-open"]
    async with world.watching(gates=(lambda node, report: reasons[0],)) as watcher:
        await world.swept(watcher)
        assert not world.patches()
        reasons[0] = ""
        await world.marked("n1", MarkState.PENDING)


async def test_a_conflict_is_read_and_judged_again(world):
    fault = world.server.faults.order(
        fault_of_the_hold(code=409, reason="Conflict", message="the object has been modified")
    )
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
    assert (fault.seen, watcher.term.writer.counts.conflicts) == (1, 1)


async def test_a_hold_whose_answer_was_lost_is_looked_for_and_not_repeated(world):
    world.server.faults.order(fault_of_the_hold(drop=True))
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        await world.until(lambda: world.engine.heard("start"))
    assert watcher.term.writer.counts.lost_answers == 1
    assert len(world.patches()) == 1


async def test_an_overloaded_server_gets_the_hold_later(world):
    world.server.faults.order(fault_of_the_hold(times=3, code=503, reason="ServiceUnavailable"))
    await world.add_node("n1", SICK)
    async with world.watching():
        await world.marked("n1", MarkState.PENDING)
    assert len(world.patches()) == 1


async def test_a_refused_hold_is_said_and_tried_again(world, caplog):
    world.server.faults.order(fault_of_the_hold(times=2, code=403, reason="Forbidden"))
    await world.add_node("n1", SICK)
    async with world.watching():
        await world.marked("n1", MarkState.PENDING)
    assert "did=cannot-write node=n1 act=hold" in caplog.text


async def test_a_storm_is_held_before_its_first_incident_starts_and_the_worst_come_first(world):
    size = 200
    for number in range(size):
        fault = SICK if number % 10 == 0 else thermal()
        await world.add_node(f"n{number}", fault)
    held: list[int] = []
    world.engine.on_start = lambda opening: held.append(0 if held else len(world.patches()))
    # Its lease and its sweeps have no part in this, and two cores are slow.
    patient = replace(
        QUICK,
        sweep_every=timedelta(seconds=5),
        lease_duration=timedelta(hours=2),
        lease_give_up_after=timedelta(hours=1),
    )
    async with world.watching(settings=patient):
        await world.until(lambda: len(world.engine.heard("start")) == size)
    names = [each["objectRef"]["name"] for each in world.patches()]
    assert held[0] == size == len(names) == len(set(names))
    in_flight = QUICK.node_writes_at_once  # they may overtake each other, no others may
    first = {int(name[1:]) for name in names[: size // 10 + 2 * in_flight]}
    assert first >= set(range(0, size, 10))
    started = [name for name, *_ in world.engine.heard("start")]
    assert len(set(started)) == size


async def test_reports_follow_only_when_something_changed(world):
    await world.add_node("n1", SICK)
    async with world.watching() as watcher:
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: world.engine.heard("start"))
        await world.change("n1", mark=replace(node.mark, state=MarkState.OWNED))
        await world.say("n1", a_fault(count=1000))
        await world.swept(watcher)
        assert not world.engine.heard("report")
        await world.say("n1", SICK, thermal())
        await world.until(lambda: world.engine.heard("report"))
        await world.say("n1", SICK)
        await world.swept(watcher)
        assert len(world.engine.heard("report")) == 1
        world.clock.skip(minutes=1)
        await world.until(lambda: len(world.engine.heard("report")) == 2)


async def test_a_fault_that_people_only_want_to_know_of_is_told_once_and_moves_nothing(world):
    told = []

    async def tell(node, fault):
        told.append((node.name, fault.name))

    rules = PlainRules(only_told=(FaultName.THERMAL,))
    await world.add_node("n1", thermal())
    async with world.watching(tell=tell, rules=rules) as watcher:
        await world.swept(watcher, 3)
    assert told == [("n1", FaultName.THERMAL)]
    assert world.patches() == []
