"""The activity `tell`: people hear of a question or a hand-off, by Event and by notification.

Its completion is the record that they were told. It may be repeated: the Event has the same name,
the notification the same key.
"""

import asyncio

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.event_writer import EventWriter
from activities.notice import notice_of
from activities.notifier import Notifier
from activities.step_events import event_of_telling
from fleet.errors import Refused, Transient
from fleet.telling import Telling

BEAT_SECONDS = 10.0
"""While a notice waits for its digest: a worker that died is noticed soon."""


class TellActivities:
    """The activity `tell`; without a notifier there is the Event alone."""

    def __init__(self, events: EventWriter, notifier: Notifier | None = None) -> None:
        self._events = events
        self._notifier = notifier

    @activity.defn(name="tell")
    async def tell(self, telling: Telling) -> bool:
        """True: a person was notified. False: there is only the Event.

        Raises ApplicationError, retryable where the receiver may take it later.
        """
        await self._events.write(event_of_telling(telling))
        if self._notifier is None:
            return False
        beat = asyncio.create_task(_beat())
        try:
            await self._notifier.notify(notice_of(telling))
        except Transient as problem:
            raise ApplicationError(str(problem), type="Transient") from problem
        except Refused as problem:
            raise ApplicationError(str(problem), type="Refused", non_retryable=True) from problem
        finally:
            beat.cancel()
        return True


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(BEAT_SECONDS)
