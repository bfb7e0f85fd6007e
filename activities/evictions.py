"""Asking for the evictions of one drain: each Pod at its own pace, and who refuses, by name.

Losing what is kept here costs a few early asks, nothing else. Which Pods may be asked for is the
drain's decision, what an answer means is `eviction.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from activities.budgets import budgets_of, describe
from activities.clock import Clock
from activities.eviction import Answer, Reaction, delay, read_answer
from activities.eviction_requests import EvictionRequests
from activities.pods import PlannedPod
from activities.waiting import list_all
from fleet.errors import Ambiguous, Refused, Transient
from fleet.ports import Json, Kubernetes

AT_ONCE = 10
"""Evictions in flight for one node; budgets free up one Pod at a time anyway."""

LONGEST_GRACE = 600
"""Seconds of its own grace that a Pod gets where it is deleted after the deadline."""


@dataclass(slots=True)
class _Asked:
    """What was asked last (`verb`), refusals so far, the last answer, and when to ask again."""

    verb: str
    count: int
    answer: Answer
    due: datetime


class Evictions:
    """The evictions of one drain."""

    def __init__(
        self,
        kubernetes: Kubernetes,
        now: Clock,
        jitter: Callable[[], float],
        requests: EvictionRequests | None = None,
    ) -> None:
        """`jitter` gives numbers in 0..1; `requests` where pods are to be asked first."""
        self._requests = requests
        self._kubernetes = kubernetes
        self._now = now
        self._jitter = jitter
        self._asked: dict[str, _Asked] = {}

    def due(self, uid: str) -> datetime:
        """When the Pod may be asked for again; now, if it never was."""
        asked = self._asked.get(uid)
        return asked.due if asked else self._now()

    def why(self, uid: str) -> str:
        """Why it is still there, in the words of its last answer; empty if nothing refused."""
        asked = self._asked.get(uid)
        return asked.answer.why if asked else ""

    async def ask(self, pods: Sequence[PlannedPod]) -> None:
        """Evict those that are due."""
        await self._each("evict", self._evict, pods)

    async def delete(self, pods: Sequence[PlannedPod]) -> None:
        """Delete those that are due: past the deadline, and only where it is allowed.

        Each keeps its own grace. The object stays until its kubelet says that it has stopped.
        """
        await self._each("delete", self._delete, pods)

    async def _each(
        self,
        verb: str,
        call: Callable[[PlannedPod], Awaitable[Answer]],
        pods: Sequence[PlannedPod],
    ) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(pod: PlannedPod) -> None:
            async with gate:
                await self._note(verb, pod, await call(pod))

        async with asyncio.TaskGroup() as group:
            for pod in pods:
                if self._is_due(verb, pod.uid):
                    group.create_task(one(pod))

    def _is_due(self, verb: str, uid: str) -> bool:
        asked = self._asked.get(uid)
        return asked is None or asked.verb != verb or asked.due <= self._now()

    async def _evict(self, pod: PlannedPod) -> Answer:
        """Evict this UID, and no other Pod that may have taken its name."""
        if self._requests:
            asked = await _answer(self._ask_itself(self._requests, pod))
            if asked.reaction is not Reaction.STUCK:
                return asked
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        return await _answer(self._kubernetes.create(f"{pod.path}/eviction", body))

    async def _ask_itself(self, requests: EvictionRequests, pod: PlannedPod) -> None:
        """Raises Refused where the pod cannot be asked, and must be evicted."""
        if not await requests.ask(pod):
            raise Refused(422, "NotAsked", "its responders cannot be asked")

    async def _delete(self, pod: PlannedPod) -> Answer:
        grace = max(1, min(pod.grace, LONGEST_GRACE))
        call = self._kubernetes.delete(pod.path, uid=pod.uid, grace_seconds=grace)
        return await _answer(call)

    async def _note(self, verb: str, pod: PlannedPod, answer: Answer) -> None:
        if answer.reaction in (Reaction.BLOCKED, Reaction.STUCK):
            answer = await self._name_budgets(pod, answer)
        past = self._asked.get(pod.uid)
        count = past.count if past and past.verb == verb else 0
        pause = timedelta(seconds=delay(answer, count, self._jitter()))
        count += answer.reaction is Reaction.BLOCKED  # an overloaded server is not a refusal
        self._asked[pod.uid] = _Asked(verb, count, answer, self._now() + pause)

    async def _name_budgets(self, pod: PlannedPod, answer: Answer) -> Answer:
        path = f"/apis/policy/v1/namespaces/{pod.namespace}/poddisruptionbudgets"
        try:
            listing = await list_all(self._kubernetes, path)
        except (Refused, Transient):
            return answer  # a better sentence is not worth a drain
        words = "; ".join(describe(each) for each in budgets_of(pod.labels, listing.objects))
        if not words:
            return answer
        down = "" if pod.ready else " (this Pod is down itself)"
        said = f"{answer.why}; " if answer.reaction is Reaction.STUCK else ""
        return Answer(answer.reaction, f"{said}{words}{down}", answer.hint)


async def _answer(call: Awaitable[object]) -> Answer:
    try:
        await call
    except (Refused, Transient, Ambiguous) as problem:
        return read_answer(problem)
    return read_answer(None)
