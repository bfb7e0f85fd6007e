"""One notification for a storm, not one for each node: what the watcher announces when a breaker
opens. The watcher repeats it until it was taken and remembers that; here is only how it is said.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from activities.notice import Notice
from activities.notifier import Notifier
from fleet.errors import Refused, Transient
from fleet.instant import format_instant
from fleet.telling import Matter
from policies.storm import Storm

LIMIT_SECONDS = 15.0
"""For one try: the breaker's round waits no longer for a receiver that does not answer."""

_NOTHING_SHARED = "nothing that they all share"
_STANDS = "nothing new is held or lent there until the share falls or a person closes the breaker"
_OVER = "it was over before this could be told: what was held back is let go, one after another"

_log = logging.getLogger(__name__)


def announcer(notifier: Notifier | None, cluster: str) -> Callable[[Storm], Awaitable[None]]:
    """What tells people of a storm; raises Transient where the watcher shall try again.

    A receiver that refuses will refuse again: that is said in the log, once, and is all.
    """

    async def announce(storm: Storm) -> None:
        if notifier is None:
            return
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await notifier.notify(notice_of_storm(storm, cluster))
        except TimeoutError as problem:
            raise Transient(f"nobody took the notice of a storm in {LIMIT_SECONDS} s") from problem
        except Refused as problem:
            _log.error("what=storm-not-told scope=%s why=%r", storm.scope, str(problem))

    return announce


def notice_of_storm(storm: Storm, cluster: str) -> Notice:
    """The same storm has the same key, whoever says it."""
    nodes = ", ".join(storm.nodes)
    more = storm.sick - len(storm.nodes)
    named = f"{nodes} and {more} more" if more > 0 else nodes
    lines = (
        storm.why,
        f"what they share: {storm.cause}" if storm.cause else _NOTHING_SHARED if nodes else "",
        f"{'still sick' if storm.over else 'sick'}: {named}" if named else "",
        _OVER if storm.over else _STANDS,
    )
    return Notice(
        key=f"storm-{cluster}-{storm.key}-{format_instant(storm.since)}",
        matter=Matter.STORM,
        title=_title(storm),
        cluster=cluster,
        lines=tuple(each for each in lines if each),
        commands=("gpumend incidents",),
    )


def _title(storm: Storm) -> str:
    if storm.over:
        return f"too many nodes of {storm.scope} were sick at once: suspect the sensor first"
    return (
        f"{storm.sick} of {storm.size} nodes of {storm.scope} are sick at once:"
        " suspect the sensor first"
    )
