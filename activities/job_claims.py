"""Which jobs have pods on a node, and on how many nodes each of them runs.

A job is what a lost node stops as a whole. Finished pods are of no job.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from activities.jobs import GROUP, Job, job_of
from activities.node_pods import is_finished, pods_on
from activities.waiting import list_all
from fleet.node import Manifest
from fleet.ports import Kubernetes


async def jobs_on(
    kubernetes: Kubernetes, node: str, labels: Sequence[str], sized: bool
) -> Mapping[str, int]:
    """Each job (`namespace/name`) with pods on the node, and its nodes; 1 unless `sized`.

    A size costs a list of the job's pods: of all pods of the namespace for a scheduling group,
    which no selector finds.
    """
    found = {job for _, job in _working(await pods_on(kubernetes, node), labels)}
    sizes: dict[str, int] = {}
    for job in sorted(found, key=_place):
        size = await _size(kubernetes, job, labels) if sized else 1
        sizes[str(job)] = max(1, size)
    return sizes


async def _size(kubernetes: Kubernetes, job: Job, labels: Sequence[str]) -> int:
    query = {} if job.key == GROUP else {"labelSelector": f"{job.key}={job.name}"}
    path = f"/api/v1/namespaces/{job.namespace}/pods"
    members = (await list_all(kubernetes, path, query)).objects
    mine = (pod for pod, its in _working(members, labels) if its == job)
    return len({each["spec"].get("nodeName") for each in mine} - {None})


def _working(pods: Iterable[Manifest], labels: Sequence[str]) -> Iterator[tuple[Manifest, Job]]:
    for pod in pods:
        job = None if is_finished(pod) else job_of(pod, labels)
        if job is not None:
            yield pod, job


def _place(job: Job) -> tuple[str, str, bool, str]:
    """Groups before labels of the same name: the order in which a name is claimed."""
    return job.namespace, job.name, job.key != GROUP, job.key
