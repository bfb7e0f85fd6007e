"""The activity `tell`: people hear of a question or a hand-off, by Event and by notification.

Its completion is the record that they were told. It may be repeated: the Event has the same name.
"""

from temporalio import activity

from activities.event_writer import EventWriter
from activities.step_events import event_of_telling
from fleet.telling import Telling


class TellActivities:
    """The activity `tell`."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events

    @activity.defn(name="tell")
    async def tell(self, telling: Telling) -> bool:
        """True: it was said. What nobody could be told is in the log."""
        return await self._events.write(event_of_telling(telling))
