"""Give the machine back for another: SUCCEEDED only when the old one and its Node are gone.

Its successor is proven like any new node, and is not waited for here.
"""

from collections.abc import Sequence

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import Progress, conduct
from activities.endings import NODE_GONE, ended, succeeded
from activities.look import look
from activities.replace_ways import WayToReplace
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.reason import NO_MEANS
from fleet.request import StepRequest


class ReplaceActivities:
    """The activity `replace`."""

    def __init__(
        self, kubernetes: Kubernetes, ways: Sequence[WayToReplace], now: Clock = utc_now
    ) -> None:
        """`ways` in the order in which they are tried; the first that fits the node is taken."""
        self._kubernetes = kubernetes
        self._ways = tuple(ways)
        self._now = now

    @activity.defn(name="replace")
    async def replace(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: machine and Node are gone. PERMANENT: `no-means`, `replace-failed`.

        AMBIGUOUS: it was asked for and is not over by the deadline. PERMANENT `needs-approval`:
        nothing was begun, or what the witnesses say contradicts itself.
        """
        return await conduct(lambda progress: self._replace(request, progress))

    async def _replace(self, request: StepRequest, progress: Progress) -> Outcome:
        for way in self._ways:
            outcome = await way.resume(request, progress)
            if outcome:
                return outcome
        sight = await look(self._kubernetes, request, self._now, premise=True)
        if isinstance(sight, Outcome):
            return _gone_by_an_earlier_try(sight)
        for way in self._ways:
            outcome = await way.begin(sight, request, progress)
            if outcome:
                return outcome
        what = "no provider that terminates is configured, and the Node has no NodeClaim"
        return ended(OutcomeKind.PERMANENT, NO_MEANS, what, sight.node)


def _gone_by_an_earlier_try(seen: Outcome) -> Outcome:
    """A first try saw the Node, or there would be no second: what is gone now is replaced."""
    if seen.reason == NODE_GONE and activity.info().attempt > 1:
        return succeeded("the Node is gone since an earlier try")
    return seen
