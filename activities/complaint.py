"""What the watcher has to say to the people of a node: once a text, as a Kubernetes Event, and a
fault that policy only wants people to know also as a notification.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine

from activities.event_writer import EventWriter
from activities.node_event import EventType, NodeEvent, name_faults
from activities.notice import notice_of
from activities.notifier import Notifier
from fleet.errors import Ambiguous, Refused, Transient
from fleet.fault import Fault
from fleet.instant import format_instant
from fleet.node import NodeIdentity
from fleet.telling import Matter, Telling

LIMIT_SECONDS = 60.0
"""For one notification: in a storm it waits for its turn, or goes with a digest."""

_log = logging.getLogger(__name__)
Saying = Coroutine[None, None, None]


def complaining(events: EventWriter) -> Callable[[NodeIdentity, str, str], Saying]:
    """What writes a warning about a node; it never raises, and a repeat makes no second Event."""

    async def complain(node: NodeIdentity, reason: str, text: str) -> None:
        operation = hashlib.sha256(text.encode()).hexdigest()[:16]
        await events.write(
            NodeEvent(
                node, "", reason, text, operation, same=(node.uid, text), type=EventType.WARNING
            )
        )

    return complain


def telling_faults(
    events: EventWriter, notifier: Notifier | None
) -> Callable[[NodeIdentity, Fault], Saying]:
    """What tells of a fault that no node is held for; it never raises."""
    complain = complaining(events)

    async def tell(node: NodeIdentity, fault: Fault) -> None:
        await complain(node, "FaultNotHeld", f"nothing is held for {name_faults((fault,))}")
        if notifier is None:
            return
        key = f"fault-{node.uid}-{fault.key}-{format_instant(fault.since)}"
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await notifier.notify(notice_of(Telling(Matter.FAULT, key, "", node, (fault,))))
        except (TimeoutError, Transient, Ambiguous, Refused) as problem:
            _log.warning("what=fault-not-told node=%s why=%r", node.name, str(problem))

    return tell
