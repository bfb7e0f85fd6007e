"""A complaint of the watcher is one Event a text, however often it is made."""

from activities.complaint import complaining
from activities.event_writer import EventWriter
from activities.node_event import EVENTS
from tests.cluster import identity, now
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
