"""Tell the API server what stands on this node, and that the agent lives.

Level-triggered: only the newest wish counts, what the server has is read and compared, and a patch
goes out when they differ in something that matters. While the server is away nothing is queued.
A fault that comes or goes is told at once, counts that grow in a storm at leisure (`pace`).
"""

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from fleet.agent_figure import PATCHES, REFUSALS, RENEWALS
from fleet.errors import Ambiguous, NotFound, Refused, Transient
from fleet.instant import format_instant, format_micro_instant
from fleet.names import AGENT_VERSION_ANNOTATION, DOMAIN, LEASES, NAMESPACE, agent_lease
from fleet.node import Condition
from fleet.version import VERSION
from probes.agent.conditions import Conditions, digest, matter
from probes.agent.figures import Figures
from probes.agent.pace import Pace
from probes.log import say

LEASE_PERIOD = 120.0
"""Seconds between two renewals; a Lease three periods old is a silent agent."""
RETRY_FIRST, RETRY_LIMIT = 0.5, 30.0
"""Seconds before the first retry; doubled up to the limit, with up to a quarter of jitter."""

Clock = Callable[[], datetime]


class Server(Protocol):
    """The calls of `probes.agent.api.ApiServer`."""

    def get(self, path: str) -> dict[str, Any]: ...

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]: ...

    def patch(self, path: str, body: dict[str, Any], kind: str) -> dict[str, Any]: ...


@dataclass(slots=True)
class Board:
    """What one node's status says of us, and what it should say."""

    server: Server
    node: str
    known: dict[str, Condition] | None = None

    def read(self) -> None:
        """Read our conditions as the server has them; the server's cache is good enough."""
        node = self.server.get(f"/api/v1/nodes/{self.node}/status?resourceVersion=0")
        theirs = (node.get("status") or {}).get("conditions") or ()
        self.known = {
            each["type"]: Condition(
                each["type"],
                each.get("status", ""),
                each.get("reason", ""),
                each.get("message", ""),
            )
            for each in theirs
            if str(each.get("type", "")).startswith(f"{DOMAIN}/")
        }

    def differing(self, wanted: Conditions) -> list[Condition]:
        """The conditions that the server does not have, or has otherwise."""
        known = self.known or {}
        return [
            each
            for kind, each in wanted.items()
            if kind not in known or digest(known[kind]) != digest(each)
        ]

    def urgent(self, changed: list[Condition]) -> bool:
        """Whether more than counts is new in these."""
        known = self.known or {}
        return any(
            each.type not in known or matter(known[each.type]) != matter(each) for each in changed
        )

    def write(self, changed: list[Condition], now: datetime) -> None:
        """Patch these conditions of our own Node's status."""
        body = {"status": {"conditions": [self._fields(each, now) for each in changed]}}
        path = f"/api/v1/nodes/{self.node}/status"
        self.server.patch(path, body, "application/strategic-merge-patch+json")
        known = {} if self.known is None else self.known
        self.known = {**known, **{each.type: each for each in changed}}

    def _fields(self, condition: Condition, now: datetime) -> dict[str, str]:
        """As the server takes it. Its heartbeat is when we wrote; that we live says the Lease."""
        written = format_instant(now.replace(microsecond=0))
        fields = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastHeartbeatTime": written,
        }
        before = (self.known or {}).get(condition.type)
        if before is None or before.status != condition.status:
            fields["lastTransitionTime"] = written
        return fields


def renew_lease(
    server: Server, node: str, boot_id: str, now: datetime, period: float = LEASE_PERIOD
) -> None:
    """Renew the Lease by which others see that the agent lives, and which one it is; create it
    where it is not."""
    name, said = agent_lease(node), {"annotations": {AGENT_VERSION_ANNOTATION: VERSION}}
    spec = {
        "holderIdentity": boot_id,
        "leaseDurationSeconds": max(1, int(3 * period)),
        "renewTime": format_micro_instant(now),
    }
    try:
        body = {"metadata": said, "spec": spec}
        server.patch(f"{LEASES}/{name}", body, "application/merge-patch+json")
    except NotFound:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": NAMESPACE, **said},
            "spec": spec,
        }
        server.create(LEASES, body)


@dataclass(slots=True)
class Publisher:
    """A thread that keeps the server at the newest wish. `want` is the only way in.

    `lease_period` is the seconds between two renewals.
    """

    server: Server
    node: str
    clock: Clock
    lease_period: float = field(default_factory=lambda: LEASE_PERIOD)
    figures: Figures = field(default_factory=Figures)
    _pace: Pace = field(default_factory=Pace, init=False)
    _board: Board = field(init=False)
    _wanted: Conditions = field(default_factory=dict, init=False)
    _boot_id: str = field(default="", init=False)
    _wake: threading.Event = field(default_factory=threading.Event, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _failures: int = field(default=0, init=False)
    _lease_due: float = field(default=0.0, init=False)
    _patch_due: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._board = Board(self.server, self.node)

    def want(self, boot_id: str, wanted: Conditions) -> None:
        """Replace the wish. Never blocks."""
        if wanted != self._wanted or boot_id != self._boot_id:
            self._boot_id, self._wanted = boot_id, wanted
            self._wake.set()

    def stop(self) -> None:
        """End the thread after the call that is under way."""
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        """Until stopped: publish, renew, wait for the next wish, the next renewal or a retry."""
        while not self._stop.is_set():
            self._wake.clear()
            problems = [each for each in (_try(self._publish), _try(self._renew)) if each]
            if problems:
                self._stop.wait(self._delay(problems[0]))
                continue
            if self._failures:
                say("api server is back", after_failures=self._failures)
            self._failures = 0
            self._wake.wait(self._rest())

    def _rest(self) -> float:
        """Seconds until something is due, if no wish comes before."""
        if not self._boot_id:
            return self.lease_period
        due = min(self._lease_due, self._patch_due) - time.monotonic()
        return min(max(0.0, due), self.lease_period)

    def _publish(self) -> None:
        """What differs, now or when there is leave to: then `_patch_due` says when."""
        self._patch_due = math.inf
        if not self._wanted:
            return
        if self._board.known is None:
            self._board.read()
        changed = self._board.differing(self._wanted)
        if changed:
            now = time.monotonic()
            wait = self._pace.wait(now, self._board.urgent(changed))
            if wait > 0:
                self._patch_due = now + wait
                return
            self._board.write(changed, self.clock())
            self._pace.spend(now)
            self.figures.count(PATCHES)
            for each in changed:
                say("published", type=each.type, status=each.status, reason=each.reason)

    def _renew(self) -> None:
        """After every renewal the node is read anew: one that was made again lacks our word."""
        if time.monotonic() < self._lease_due or not self._boot_id:
            return
        renew_lease(self.server, self.node, self._boot_id, self.clock(), self.lease_period)
        self.figures.count(RENEWALS)
        if self._lease_due:
            self._board.known = None
            self._wake.set()
        self._lease_due = time.monotonic() + self.lease_period

    def _delay(self, problem: Exception) -> float:
        """Seconds until the next try; what the server has is no longer known."""
        self._failures += 1
        self.figures.count(REFUSALS)
        self._board.known = None
        delay = min(RETRY_LIMIT, RETRY_FIRST * 2.0 ** min(self._failures - 1, 10))
        delay = max(delay, float(getattr(problem, "retry_after", None) or 0.0))
        delay = min(delay, 2 * RETRY_LIMIT) * (1.0 + random.random() / 4)  # noqa: S311
        say("api server refused or away", problem=str(problem), retry_in=round(delay, 1))
        return delay


def _try(call: Callable[[], None]) -> Exception | None:
    try:
        call()
    except (Transient, Ambiguous, Refused) as problem:
        return problem
    return None
