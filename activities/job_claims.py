"""Which jobs have pods on a node, and on how many nodes each of them runs.

A job is what a lost node stops as a whole: the pods of one scheduling group, else of one label's
value, in one namespace. Finished pods are of no job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.waiting import list_all
from fleet.ports import Json, Kubernetes


@dataclass(frozen=True, slots=True, order=True)
class _Job:
    """`key` is the label that names it; empty for a scheduling group."""

    namespace: str
    name: str
    key: str


async def jobs_on(
    kubernetes: Kubernetes, node: str, labels: Sequence[str], sized: bool
) -> Mapping[str, int]:
    """Each job (`namespace/name`) with pods on the node, and its nodes; 1 unless `sized`.

    A size costs a list of the job's pods: of all pods of the namespace for a scheduling group,
    which no selector finds.
    """
    pods = await _pods(kubernetes, "/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    found = sorted({job for each in pods if (job := _job(each, labels))})
    sizes: dict[str, int] = {}
    for job in found:
        size = await _size(kubernetes, job, labels) if sized else 1
        sizes[f"{job.namespace}/{job.name}"] = max(1, size)
    return sizes


async def _size(kubernetes: Kubernetes, job: _Job, labels: Sequence[str]) -> int:
    query = {"labelSelector": f"{job.key}={job.name}"} if job.key else {}
    members = await _pods(kubernetes, f"/api/v1/namespaces/{job.namespace}/pods", query)
    mine = (each for each in members if _job(each, labels) == job)
    return len({each["spec"].get("nodeName") for each in mine} - {None})


def _job(pod: Mapping[str, Any], labels: Sequence[str]) -> _Job | None:
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return None
    namespace = pod["metadata"]["namespace"]
    group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if group:
        return _Job(namespace, group, "")
    named = pod["metadata"].get("labels") or {}
    key = next((each for each in labels if named.get(each)), None)
    return _Job(namespace, named[key], key) if key else None


async def _pods(kubernetes: Kubernetes, path: str, query: Mapping[str, str]) -> Sequence[Json]:
    return (await list_all(kubernetes, path, query)).objects
