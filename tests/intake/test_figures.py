"""What the watcher shows of itself, by a whole watcher."""

import pytest
from prometheus_client import CollectorRegistry

from fleet.mark import MarkState
from intake.delays import Delays
from intake.figures import WatcherFigures
from tests.intake.world import SICK


async def test_holds_refusals_queues_and_troubles_are_shown_by_who_leads(world):
    await world.add_node("n1", SICK)
    await world.add_node("n2", SICK)
    await world.change("n2", **{"gpumend.io/pause": "being rewired"})
    registry = CollectorRegistry()
    async with world.watching() as watcher:
        registry.register(WatcherFigures(lambda: watcher.term))
        await world.marked("n1", MarkState.PENDING)
        await world.swept(watcher)
        shown = registry.get_sample_value
        assert shown("gpumend_watcher_writes_total", {"act": "hold"}) == 1
        assert shown("gpumend_watcher_not_held", {"reason": "paused"}) == 1
        assert shown("gpumend_watcher_queue", {"queue": "writes"}) == 0
        assert shown("gpumend_watcher_hold_delay_seconds_count") == 1
        assert shown("gpumend_watcher_troubles_total", {"what": "node-write"}) == 0


def test_who_does_not_lead_shows_nothing():
    assert list(WatcherFigures(lambda: None).collect()) == []


@pytest.mark.parametrize(("seconds", "bound"), [(-5, "1"), (1, "1"), (1.5, "5"), (9e9, "+Inf")])
def test_a_delay_counts_in_its_class_and_all_above(seconds, bound):
    delays = Delays()
    delays.add(seconds)
    counted = [upper for upper, count in delays.cumulative() if count]
    assert counted[0] == bound
    assert counted[-1] == "+Inf"
