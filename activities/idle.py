"""The activity `idle`: whether Pods of jobs still use the GPUs of a node whose repair may wait.

One list of the node's Pods, and nothing is changed. Static Pods, DaemonSets and our own are the
node's; any other that may have a GPU open is a job's, one that is terminating, too.
"""

from collections.abc import Sequence
from datetime import datetime

from temporalio import activity

from activities.clock import Clock, utc_now
from activities.conduct import conduct
from activities.drain import NAMED
from activities.endings import ended, succeeded
from activities.look import Sight, glance, look
from activities.node_pods import pods_on
from activities.pods import DrainTerms, PodClass, classify, may_hold_gpu
from fleet.node import Manifest
from fleet.outcome import Outcome, OutcomeKind
from fleet.ports import Kubernetes
from fleet.request import StepRequest

IN_USE = "in-use"
"""TRANSIENT: these Pods may have a GPU open."""

JOBS = (
    PodClass.EVICT,
    PodClass.TERMINATING,
    PodClass.PROTECTED,
    PodClass.REFUSED,
    PodClass.TOLERATES,
    PodClass.LEFT_BEHIND,
    PodClass.UNREACHABLE,
)


class IdleActivities:
    """The activity `idle`."""

    def __init__(self, kubernetes: Kubernetes, now: Clock = utc_now) -> None:
        self._kubernetes = kubernetes
        self._now = now

    @activity.defn(name="idle")
    async def idle(self, request: StepRequest) -> Outcome:
        """SUCCEEDED: no Pod of a job may hold a GPU. TRANSIENT `in-use`, with their names."""
        return await conduct(lambda _: self._idle(request))

    async def _idle(self, request: StepRequest) -> Outcome:
        if request.dry:  # there is no hold of ours to look for
            sight = await glance(self._kubernetes, request)
        else:
            sight = await look(self._kubernetes, request, self._now, premise=False)
        if isinstance(sight, Outcome):
            return sight
        pods = await pods_on(self._kubernetes, request.node.name)
        users = users_of(pods, sight, request, self._now())
        if users:
            named = ", ".join(users[:NAMED])
            return ended(OutcomeKind.TRANSIENT, IN_USE, f"{len(users)}: {named}", sight.node)
        return succeeded("no Pod of a job holds a GPU", sight.node)


def users_of(
    pods: Sequence[Manifest], sight: Sight, request: StepRequest, now: datetime
) -> tuple[str, ...]:
    """The Pods of jobs among those of this node that may have a GPU open, by name."""
    terms = DrainTerms.of(sight.manifest, sight.node, request, ())
    held = (pod for pod in pods if may_hold_gpu(pod))
    jobs = (pod for pod in held if classify(pod, terms, now)[0] in JOBS)
    names = (f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in jobs)
    return tuple(sorted(names))
