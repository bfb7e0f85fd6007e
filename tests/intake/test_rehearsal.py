"""Dry run: the engine hears of everything, and the node is not touched."""

from datetime import timedelta

import pytest

from fleet.fault import FaultName
from fleet.mark import MarkState
from fleet.names import dry_workflow_id, incident_workflow_id
from intake.nominations import nominate
from intake.rehearsal import Rehearsals
from intake.rules import PolicyRules
from intake.settings import Settings
from policies.document import load
from tests.intake.cases import NOW, PlainRules, a_fault, a_node, a_report, later
from tests.intake.world import SICK, thermal

DRY = PlainRules(dry=(FaultName.THERMAL,))
HOT = a_fault(FaultName.THERMAL, "host")


def dry_ids(world):
    return sorted(each for each in world.engine.open if each.startswith("dry/"))


async def test_a_rehearsed_fault_opens_a_dry_incident_and_no_patch_is_made(world):
    await world.add_node("n1", thermal())
    async with world.watching(rules=DRY) as watcher:
        await world.until(lambda: world.engine.heard("start"))
        await world.swept(watcher)
        (name, opening, report), *more = world.engine.heard("start")
        assert (name, opening.dry, more) == ("n1", True, [])
        assert opening.workflow_id == dry_ids(world)[0]
        assert [each.name for each in report.faults] == [FaultName.THERMAL]
        await world.say("n1")
        world.clock.skip(minutes=2)
        await world.until(lambda: world.engine.heard("report"))
    ((_, workflow, report),) = world.engine.heard("report")
    assert (workflow, report.faults) == (opening.workflow_id, ())
    assert not world.patches()


async def test_a_new_leader_starts_it_again_and_ends_what_became_well_meanwhile(world):
    await world.add_node("n1", thermal())
    await world.add_node("n2", thermal())
    async with world.watching(rules=DRY):
        await world.until(lambda: len(dry_ids(world)) == 2)
    await world.say("n1")
    world.engine.told.clear()
    async with world.watching(rules=DRY):
        await world.until(lambda: world.engine.heard("report"))
        await world.until(lambda: world.engine.heard("start"))
    assert {name for name, *_ in world.engine.heard("report")} == {"n1"}
    assert {name for name, *_ in world.engine.heard("start")} == {"n2"}
    assert not world.patches()


async def test_a_real_fault_on_the_same_node_opens_a_real_incident_beside_it(world):
    await world.add_node("n1", thermal())
    async with world.watching(rules=DRY):
        await world.until(lambda: dry_ids(world))
        await world.say("n1", thermal(), SICK)
        node = await world.marked("n1", MarkState.PENDING)
        await world.until(lambda: len(world.engine.open) == 2)
        assert node.hold.value == "gpu-lost"
        await world.delete("n1")
        await world.until(lambda: len(world.engine.heard("node-gone")) == 2)


async def test_while_temporal_is_away_a_rehearsal_waits_too(world):
    world.engine.away = True
    await world.add_node("n1", thermal())
    async with world.watching(rules=DRY) as watcher:
        await world.until(lambda: watcher.term and watcher.term.delivery.counts.failures >= 2)
        world.engine.away = False
        await world.until(lambda: dry_ids(world))


def told(report, *, after=timedelta(0), start=HOT, node=None):
    """What a rehearsal hears of `report`, so long after it heard of one fault."""
    rehearsals = Rehearsals(Settings())
    first = rehearsals.parcel(a_node(), a_report(HOT), HOT, {}, NOW)
    assert first
    rehearsals.told("n1", first, is_open=True, now=NOW)
    return rehearsals.parcel(node or a_node(), report, start, {}, NOW + after)


@pytest.mark.parametrize(
    ("report", "after", "start", "starts"),
    [
        (a_report(HOT), timedelta(hours=1), HOT, None),
        (a_report(HOT, a_fault()), timedelta(0), HOT, True),
        (a_report(), timedelta(seconds=30), None, None),
        (a_report(), timedelta(minutes=1), None, False),
        (a_report(unknown=["agent: is silent"]), timedelta(minutes=1), None, False),
    ],
)
def test_what_is_open_hears_what_changes_and_only_a_fault_starts(report, after, start, starts):
    parcel = told(report, after=after, start=start)
    assert (parcel and parcel.starts) is starts


@pytest.mark.parametrize(
    "node",
    [
        a_node(pause="x"),
        a_node(labels={"gpumend.io/managed": "false"}),
        a_node(cool_down=later(hours=1)),
    ],
)
def test_nobody_rehearses_on_a_node_that_people_keep_us_off(node):
    assert Rehearsals(Settings()).parcel(node, a_report(HOT), HOT, {}, NOW) is None


def test_a_rehearsal_whose_node_is_not_there_is_told_so():
    node = a_node()
    here = dry_workflow_id("c", "n1", node.identity.machine)
    gone = dry_workflow_id("c", "n9", "ffffffff")
    other = dry_workflow_id("d", "n9", "ffffffff")
    real = incident_workflow_id("c", "n8", "ffffffff")
    found = nominate([node], frozenset([here, gone, other, real]), "c")
    assert found.rehearsed == (node,)
    assert set(found.nodeless) == {gone, real}


@pytest.mark.parametrize("text", ["dry_run: yes", "faults: {thermal: {dry_run: yes}}"])
def test_a_policy_rehearses_all_faults_or_some_and_holds_for_none_of_these(text):
    rules = PolicyRules(load(text, "p.yaml"))
    assert rules.rehearses(HOT)
    assert not rules.holds(HOT)
    application = a_fault(FaultName.APPLICATION)
    assert not rules.rehearses(application)
    assert not rules.holds(application)
