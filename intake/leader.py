"""One leader by a Lease: others stand by, and two at once do no harm.

The Lease saves work; safety does not rest on it. Every write of the watcher is a compare-and-set
on the Node itself, so a leader that has not noticed its end can only lose races.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fleet.errors import Ambiguous, Conflict, NotFound, Refused, Transient
from fleet.instant import format_micro_instant
from fleet.names import LEASES, NAMESPACE
from fleet.ports import Json, PatchType
from intake.surroundings import Surroundings

LEASE = "watcher"
_FAILURES = (Transient, Ambiguous, Refused, TimeoutError)


@dataclass(frozen=True, slots=True)
class Tenure:
    """Whose Lease it is at one resourceVersion; `holder` is empty where it was given back."""

    holder: str
    version: str
    renewed: str
    transitions: int


class Leader:
    """Takes part in the election under `identity`, which no other process may share."""

    def __init__(self, given: Surroundings, identity: str) -> None:
        self.leading = False
        self._identity = identity
        self._kubernetes = given.kubernetes
        self._settings = given.settings
        self._clock = given.clock
        self._journal = given.journal
        self._version = ""
        self._renewed_at = 0.0
        self._seen: Tenure | None = None
        self._seen_at = 0.0

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Stand by, lead, stand by again, until cancelled; an error of `lead` ends it."""
        while True:
            await self._acquire()
            self.leading = True
            self._journal.say("lead", identity=self._identity)
            try:
                await self._lead(lead)
            finally:
                self.leading = False
                self._journal.say("stand-by", identity=self._identity)
                await self._give_back()

    async def _acquire(self) -> None:
        wait = self._settings.lease_renew_every.total_seconds()
        while not await self._try_to_acquire():
            await self._clock.sleep(wait)

    async def _try_to_acquire(self) -> bool:
        asked_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._settings.lease_give_up_after.total_seconds()):
                tenure = await self._look()
                if tenure is None:
                    answer = await self._kubernetes.create(LEASES, self._new())
                elif self._free(tenure):
                    answer = await self._write(self._taken(tenure), tenure.version)
                else:
                    return False
        except Conflict:
            return False
        except _FAILURES as problem:
            self._journal.trouble("lease", "cannot-read-lease", lease=LEASE, because=problem)
            return False
        self._journal.over("lease", "lease-readable-again", lease=LEASE)
        self._keep(answer, asked_at)
        return True

    async def _look(self) -> Tenure | None:
        try:
            tenure = _tenure(await self._kubernetes.get(f"{LEASES}/{LEASE}"))
        except NotFound:
            return None
        if tenure != self._seen:
            self._seen, self._seen_at = tenure, self._clock.monotonic()
        return tenure

    def _free(self, tenure: Tenure) -> bool:
        """Ours, given back, or not renewed for its duration by our own clock."""
        waited = self._clock.monotonic() - self._seen_at
        expired = waited >= self._settings.lease_duration.total_seconds()
        return expired or tenure.holder in ("", self._identity)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        term = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({term, renewal}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            failure = _failure(term) or _failure(renewal)
            for task in (term, renewal):
                task.cancel()
            await asyncio.gather(term, renewal, return_exceptions=True)
        if failure:
            raise failure

    async def _renew(self) -> None:
        """Renew until it is lost; returning means that it is."""
        while True:
            await self._clock.sleep(self._settings.lease_renew_every.total_seconds())
            if not await self._still_ours():
                self._journal.say("lost-lease", identity=self._identity)
                return

    async def _still_ours(self) -> bool:
        asked_at = self._clock.monotonic()
        left = self._renewed_at + self._settings.lease_give_up_after.total_seconds() - asked_at
        if left <= 0:
            return False
        try:
            async with asyncio.timeout(left):
                self._keep(await self._write(self._renewed(), self._version), asked_at)
        except (Conflict, Ambiguous):
            return await self._look_again()
        except _FAILURES as problem:
            self._journal.trouble("renew", "cannot-renew", lease=LEASE, because=problem)
        else:
            self._journal.over("renew", "renewed-again", lease=LEASE)
        return True

    async def _look_again(self) -> bool:
        """Somebody wrote: perhaps we did, and the answer was lost."""
        try:
            async with asyncio.timeout(self._settings.lease_renew_every.total_seconds()):
                tenure = await self._look()
        except _FAILURES:
            return True  # cannot tell: the limit of renewing decides
        if tenure is None or tenure.holder != self._identity:
            return False
        self._version = tenure.version
        return True

    async def _give_back(self) -> None:
        """Read it first: a renewal may have been under way when we stopped."""
        limit = self._settings.lease_release_limit.total_seconds()
        try:
            async with asyncio.timeout(limit):
                tenure = await self._look()
                if tenure and tenure.holder == self._identity:
                    await self._write({"holderIdentity": ""}, tenure.version)
        except _FAILURES as problem:
            self._journal.say("left-lease-to-run-out", lease=LEASE, because=problem)

    def _keep(self, manifest: Json, asked_at: float) -> None:
        self._version = _tenure(manifest).version
        self._renewed_at = asked_at

    async def _write(self, spec: Json, version: str) -> Json:
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        return await self._kubernetes.patch(f"{LEASES}/{LEASE}", body, PatchType.MERGE)

    def _new(self) -> Json:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": NAMESPACE},
            "spec": {**self._renewed(), "acquireTime": format_micro_instant(self._clock.now())},
        }

    def _taken(self, tenure: Tenure) -> Json:
        changed = tenure.holder != self._identity
        return {
            **self._renewed(),
            "acquireTime": format_micro_instant(self._clock.now()),
            "leaseTransitions": tenure.transitions + changed,
        }

    def _renewed(self) -> Json:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._settings.lease_duration.total_seconds())),
            "renewTime": format_micro_instant(self._clock.now()),
        }


def _tenure(manifest: Json) -> Tenure:
    spec: dict[str, Any] = manifest.get("spec") or {}
    return Tenure(
        holder=spec.get("holderIdentity") or "",
        version=manifest["metadata"]["resourceVersion"],
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )


def _failure(task: "asyncio.Future[None]") -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None
