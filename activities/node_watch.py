"""Waiting for a Node to become what a step needs, through reboots that delete and remake it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from activities.clock import Clock
from activities.look import Sight
from activities.waiting import Listing, wait_until
from fleet.node import NodeIdentity, read_node
from fleet.ports import Json, Kubernetes

NODES = "/api/v1/nodes"

T = TypeVar("T")


async def wait_for_node(
    kubernetes: Kubernetes,
    identity: NodeIdentity,
    judge: Callable[[Sight | None], T | None],
    *,
    until: datetime,
    now: Clock,
    start: Sight | None = None,
) -> T | None:
    """The first answer of `judge` that is not None, or None when `until` has come.

    `judge` sees whatever Node has the name, be it another machine's, and None where there is none.
    It begins with `start`, a read of just now, where there is one.
    """

    def look_at(nodes: Sequence[Json]) -> T | None:
        if not nodes:
            return judge(None)
        return judge(Sight(nodes[0], read_node(nodes[0], identity.cluster)))

    query = {"fieldSelector": f"metadata.name={identity.name}"}
    known = Listing.of_one(start.manifest) if start else None
    return await wait_until(kubernetes, NODES, query, look_at, until=until, now=now, start=known)
