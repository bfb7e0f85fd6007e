"""What the cluster itself knows of a node: conditions, hold, mark, the agent's Lease, Events.

All of it is there while Temporal is away. Reading is thin; putting it in words is `timeline`'s and
`show`'s business.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from activities.hit import uids_of
from activities.node_event import COMPONENT, EVENTS
from activities.node_pods import pods_on
from activities.waiting import list_all
from console.servers import Away, once
from fleet.condition import parse_message
from fleet.errors import NotFound, Refused
from fleet.fault import Fault
from fleet.instant import parse_instant
from fleet.names import DOMAIN, HOLD_TAINT, LEASES, OPEN_ANNOTATION, agent_lease
from fleet.node import NodeState, read_node
from fleet.ports import Json, Kubernetes


@dataclass(frozen=True, slots=True)
class Told:
    """A Kubernetes Event of ours on this node."""

    at: datetime
    reason: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The Node as we see it, what its conditions say is wrong, and what cannot be read.

    `held_at` is when the hold taint was put on, `heard` when the agent last renewed its Lease.
    `pods` names those that a fault hit and that are still here, by their UIDs.
    """

    state: NodeState
    held_at: datetime | None = None
    opening: str | None = None
    faults: tuple[Fault, ...] = ()
    unknown: tuple[str, ...] = ()
    heard: datetime | None = None
    pods: Mapping[str, str] = field(default_factory=dict)
    events: tuple[Told, ...] = field(default=())


async def facts_of(kubernetes: Kubernetes, manifest: Json, cluster: str) -> NodeFacts:
    """The node and everything beside it that can be read; what cannot is left out."""
    state = read_node(manifest, cluster)
    name = state.identity.name
    lease = await _maybe(lambda: kubernetes.get(f"{LEASES}/{agent_lease(name)}"))
    selector = f"involvedObject.kind=Node,involvedObject.name={name}"
    query = {"fieldSelector": selector}
    events = await _maybe(lambda: list_all(kubernetes, EVENTS, query))
    faults, unknown = read_conditions(state)
    return NodeFacts(
        state=state,
        held_at=_held_at(state),
        opening=(manifest["metadata"].get("annotations") or {}).get(OPEN_ANNOTATION),
        faults=faults,
        unknown=unknown,
        heard=_instant((lease or {}).get("spec", {}).get("renewTime")),
        pods=await _pods_hit(kubernetes, name, faults),
        events=read_events(events.objects if events else ()),
    )


async def _pods_hit(kubernetes: Kubernetes, node: str, faults: Sequence[Fault]) -> dict[str, str]:
    """Names of the pods on the node that the faults hit; a UID alone says nothing to a person."""
    wanted = {uid for fault in faults for uid in fault.pods}
    pods = await _maybe(lambda: pods_on(kubernetes, node)) if wanted else ()
    return {
        uid: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in pods or ()
        for uid in wanted.intersection(uids_of(pod))
    }


def read_conditions(state: NodeState) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """Faults of our own conditions, and conditions that say nothing certain."""
    faults: list[Fault] = []
    unknown: list[str] = []
    for each in state.conditions:
        if not each.type.startswith(f"{DOMAIN}/"):
            continue
        try:
            faults += parse_message(each.message).faults
        except ValueError as problem:
            unknown.append(f"{each.type}: {problem}")
        if each.status == "Unknown":
            unknown.append(f"{each.type}: {each.reason}")
    return tuple(faults), tuple(unknown)


def read_events(events: Sequence[Json]) -> tuple[Told, ...]:
    """Events of ours, oldest first."""
    ours = [each for each in events if _writer(each) == COMPONENT]
    told = [
        Told(at, str(each.get("reason", "")), str(each.get("message", "")), each.get("count") or 1)
        for each in ours
        if (at := _event_time(each))
    ]
    return tuple(sorted(told, key=lambda each: each.at))


def _writer(event: Json) -> str:
    component = (event.get("source") or {}).get("component")
    return str(event.get("reportingComponent") or component or "")


def _event_time(event: Json) -> datetime | None:
    for name in ("eventTime", "firstTimestamp", "lastTimestamp"):
        if event.get(name):
            return _instant(event[name])
    return _instant(event["metadata"].get("creationTimestamp"))


def _held_at(state: NodeState) -> datetime | None:
    hold = next((each for each in state.taints if each.key == HOLD_TAINT), None)
    if hold is None:
        return None
    return _instant(hold.added) or (state.mark.opened if state.mark else None)


def _instant(text: object) -> datetime | None:
    try:
        return parse_instant(str(text)).astimezone(UTC) if text else None
    except ValueError:
        return None


async def _maybe(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What may be absent or forbidden without making the rest worthless."""
    try:
        found = await once("Kubernetes", call)
    except (NotFound, Refused):
        return None
    return None if isinstance(found, Away) else found
