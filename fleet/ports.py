"""What the engine needs from the world, as Protocols. Adapters and the simulator implement them.

`Kubernetes` speaks raw JSON: a watcher over 10,000 nodes cannot afford client models.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from fleet.census import Census
from fleet.machine import Change, MachineAddress, Operation, Power
from fleet.opening import Opening
from fleet.outcome import PastAttempt
from fleet.proving import ProveTask
from fleet.report import Report

Json = dict[str, Any]


class PatchType(StrEnum):
    """The content types of a patch that we use and the contract tests cover."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: raw items, the collection's version, the token of the next page."""

    items: tuple[Json, ...]
    resource_version: str
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object as it stands."""

    type: str
    object: Json


class Kubernetes(Protocol):
    """The API server. Paths are as in the API, without host: `/api/v1/nodes/n1`.

    Every method raises the errors of `fleet.errors` and nothing of a vendor's. A write whose answer
    was lost raises `Ambiguous`.
    """

    async def get(self, path: str) -> Json:
        """Read one object."""
        ...

    async def page(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        limit: int = 500,
        token: str = "",
    ) -> Page:
        """Read one page of a collection; `query` holds selectors."""
        ...

    def watch(
        self, path: str, *, resource_version: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Follow a collection with bookmarks; raises `Expired` when the version is too old."""
        ...

    async def create(self, path: str, body: Json) -> Json:
        """POST to a collection or a subresource such as `.../pods/p/eviction`."""
        ...

    async def patch(self, path: str, body: Json | list[Json], kind: PatchType) -> Json:
        """Change one object; guards (uid, resourceVersion) are part of the body."""
        ...

    async def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> Json:
        """Delete one object of exactly this UID."""
        ...


class Incidents(Protocol):
    """The engine as the watcher sees it. Raises `Transient` when it cannot be reached."""

    async def start(self, opening: Opening, report: Report) -> None:
        """Open the incident or, where it is open, deliver the report: one call, safe to repeat."""
        ...

    async def report(self, workflow_id: str, report: Report) -> bool:
        """Deliver a report to an open incident; False if it is closed."""
        ...

    async def node_gone(self, workflow_id: str, uid: str) -> bool:
        """Say that the Node object with this UID was deleted; False if the incident is closed.

        The UID is empty where nobody who saw the Node is left: no Node of this name and machine.
        """
        ...

    async def hold_removed(self, workflow_id: str, uid: str, mark_removed: bool) -> bool:
        """Say that somebody else took our taint (and, perhaps, our mark) away."""
        ...

    async def is_open(self, workflow_id: str) -> bool:
        """Decide, by id, whether an incident is open."""
        ...

    async def open_ids(self) -> frozenset[str]:
        """Ids of incidents that look open. The list lags: it nominates, `is_open` decides."""
        ...

    async def handed_off_ids(self) -> frozenset[str]:
        """Ids of open incidents that look handed off to a person. The list lags."""
        ...


class Proofs(Protocol):
    """Proofs of nodes as the watcher sees them. Raises `Transient` when they cannot be reached."""

    async def prove(self, task: ProveTask) -> None:
        """See to it that the node is being proven: begin, or leave alone what runs already."""
        ...


class Budgets(Protocol):
    """The disruption budget as the watcher sees it. Raises `Transient` when unreachable."""

    async def census(self, census: Census) -> None:
        """Tell how the fleet stands; an older one than was told before changes nothing."""
        ...


class Memory(Protocol):
    """What incidents that are over have tried, as Temporal keeps it within its retention."""

    async def past_attempts(self, workflow_id: str) -> tuple[PastAttempt, ...]:
        """Every repair of closed runs of this id.

        Raises `Transient` when it cannot be reached, `Refused` when a run cannot be read.
        """
        ...


class Grants(Protocol):
    """Incidents as the disruption budget sees them. Raises `Transient` when unreachable."""

    async def grant(self, workflow_id: str) -> bool:
        """Say that a lease may be fetched; False if the incident is closed."""
        ...

    async def stage(self, workflow_id: str) -> str | None:
        """Tell, by id, the stage that an open incident shows; None if it is closed."""
        ...


class Provider(Protocol):
    """Whoever runs the machines. Raises `Transient` where it cannot be reached, `Refused` where it
    says no, `Ambiguous` where the answer to a change was lost: then `operation` tells.
    """

    async def abilities(self) -> frozenset[Change]:
        """What it can do at all."""
        ...

    async def power(self, machine: MachineAddress) -> Power:
        """What it says of the machine now; UNKNOWN where it says that it does not know."""
        ...

    async def begin(self, operation: str, change: Change, machine: MachineAddress) -> Operation:
        """Ask for a change under an id. The same id again is the same operation, asked for once."""
        ...

    async def operation(self, operation: str) -> Operation | None:
        """How far it is; None where nothing was ever begun under this id."""
        ...
