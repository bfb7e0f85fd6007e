"""Reads what the doctor judges of a cluster. What we may not read is None, never an end."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, TypeVar

from activities.waiting import list_all
from console.close_breaker import circuits_of, in_words, record
from console.doctor.of_kubernetes import FENCE, PART_KEY, KubernetesFacts
from console.doctor.rights import Answer, ask, shipped
from fleet.errors import NotFound, Refused
from fleet.instant import parse_instant
from fleet.names import NAMESPACE
from fleet.node import read_node
from fleet.ports import Json, Kubernetes

T = TypeVar("T")
_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LEASES = "/apis/coordination.k8s.io/v1"
_FENCES = "/apis/admissionregistration.k8s.io/v1"


async def read_facts(kubernetes: Kubernetes, cluster: str) -> KubernetesFacts:
    """Everything; raises `Transient` where the server is away."""
    version = await kubernetes.get("/version")  # first: one line if nobody is there
    async with asyncio.TaskGroup() as group:  # nothing in it raises but what ends all of it

        def begin(call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            return group.create_task(call)

        core = f"/api/v1/namespaces/{NAMESPACE}"
        rights = begin(_rights(kubernetes))
        there = begin(_seen(kubernetes, core))
        key = begin(_seen(kubernetes, f"{core}/secrets/{PART_KEY}"))
        policy = begin(_seen(kubernetes, f"{_FENCES}/validatingadmissionpolicies/{FENCE}"))
        bound = begin(_seen(kubernetes, f"{_FENCES}/validatingadmissionpolicybindings/{FENCE}"))
        nodes = begin(_all(kubernetes, "/api/v1/nodes"))
        leases = begin(_all(kubernetes, f"{_LEASES}/namespaces/{NAMESPACE}/leases"))
        sets = begin(_all(kubernetes, "/apis/apps/v1/daemonsets"))
        deployments = begin(_all(kubernetes, "/apis/apps/v1/deployments"))
        kinds = begin(_all(kubernetes, _KINDS))
        breakers = begin(_breakers(kubernetes))
    user, answers = rights.result()
    return KubernetesFacts(
        version=str(version.get("gitVersion", "?")),
        user=user,
        namespace=there.result(),
        part_key=key.result(),
        fence=_both(policy.result(), bound.result()),
        nodes=_each(nodes.result(), lambda each: read_node(each, cluster)),
        leases=_renewals(leases.result()),
        sets=sets.result(),
        deployments=deployments.result(),
        kinds=_each(kinds.result(), lambda each: str(each["metadata"]["name"])),
        rights=answers,
        breakers=breakers.result(),
    )


async def _rights(kubernetes: Kubernetes) -> tuple[str, tuple[Answer, ...]]:
    try:
        user, answers = await ask(kubernetes, shipped())
    except Refused:
        return "", ()
    return user, tuple(answers)


def _both(one: bool | None, other: bool | None) -> bool | None:
    return None if one is None or other is None else one and other


def _each(objects: tuple[Json, ...] | None, read: Callable[[Json], T]) -> tuple[T, ...] | None:
    return None if objects is None else tuple(read(each) for each in objects)


async def _breakers(kubernetes: Kubernetes) -> Mapping[str, str] | None:
    try:
        circuits = circuits_of(await record(kubernetes))
    except Refused:
        return None
    return {each.scope: in_words(each) for each in circuits.values()}


async def _seen(kubernetes: Kubernetes, path: str) -> bool | None:
    try:
        await kubernetes.get(path)
    except NotFound:
        return False
    except Refused:
        return None
    return True


async def _all(kubernetes: Kubernetes, path: str) -> tuple[Json, ...] | None:
    try:
        return (await list_all(kubernetes, path, {})).objects
    except Refused:
        return None


def _renewals(leases: tuple[Json, ...] | None) -> Mapping[str, datetime | None] | None:
    if leases is None:
        return None
    found: dict[str, datetime | None] = {}
    for each in leases:
        text = (each.get("spec") or {}).get("renewTime")
        found[each["metadata"]["name"]] = parse_instant(text) if text else None
    return found
