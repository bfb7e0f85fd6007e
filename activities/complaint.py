"""What the watcher has to say to the people of a node, as a Kubernetes Event: once a text."""

import hashlib
from collections.abc import Awaitable, Callable

from activities.event_writer import EventWriter
from activities.node_event import EventType, NodeEvent
from fleet.node import NodeIdentity


def complaining(events: EventWriter) -> Callable[[NodeIdentity, str, str], Awaitable[None]]:
    """What writes a warning about a node; it never raises, and a repeat makes no second Event."""

    async def complain(node: NodeIdentity, reason: str, text: str) -> None:
        operation = hashlib.sha256(text.encode()).hexdigest()[:16]
        await events.write(
            NodeEvent(
                node, "", reason, text, operation, same=(node.uid, text), type=EventType.WARNING
            )
        )

    return complain
