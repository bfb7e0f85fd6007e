"""A complaint of the watcher is one Event a text, however often it is made."""

from activities.complaint import complaining, telling_faults
from activities.event_writer import EventWriter
from activities.node_event import EVENTS
from activities.notifier import Notifier
from fleet.errors import Transient
from fleet.fault import FaultName
from tests.cluster import identity, now
from tests.intake.cases import a_fault
from tests.intake.world import a_world


async def test_said_twice_it_is_one_warning_about_the_node(tmp_path):
    async with a_world(tmp_path) as world:
        complain = complaining(EventWriter(world.api, now))
        for text in ("there is no fault 'gpu-gone'", "there is no fault 'gpu-gone'", "another"):
            await complain(identity(), "IncidentNotOpened", text)
        events = (await world.api.page(EVENTS)).items
    assert sorted((each["message"], each["count"]) for each in events) == [
        ("another", 1),
        ("there is no fault 'gpu-gone'", 1),
    ]
    assert {(each["type"], each["involvedObject"]["name"]) for each in events} == {
        ("Warning", identity().name)
    }


SILENT = a_fault(FaultName.MONITOR_SILENT, "host")


async def test_a_fault_that_nothing_is_held_for_is_told_once_as_event_and_notice(tmp_path):
    sent = []

    async def post(body):
        sent.append(body)

    async with a_world(tmp_path) as world:
        tell = telling_faults(EventWriter(world.api, now), Notifier(post))
        for _ in range(2):
            await tell(identity(), SILENT)
        events = (await world.api.page(EVENTS)).items
    assert [each["reason"] for each in events] == ["FaultNotHeld"]
    assert [(each["matter"], each["node"]) for each in sent] == [("fault", identity().name)]
    assert "monitor-silent" in sent[0]["title"]


async def test_a_receiver_that_is_away_keeps_no_fault_from_its_event(tmp_path):
    async def post(body):
        raise Transient("nobody there")

    async with a_world(tmp_path) as world:
        await telling_faults(EventWriter(world.api, now), Notifier(post))(identity(), SILENT)
        assert len((await world.api.page(EVENTS)).items) == 1
