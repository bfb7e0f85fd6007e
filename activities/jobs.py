"""Which job a pod belongs to: its scheduling group, else the first label of policy's list. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from activities.hit import Hit
from activities.node_pods import is_finished
from activities.pods import MIRROR_ANNOTATION, OPERATION_LABEL, daemon_set_of, may_hold_gpu
from activities.sick_gpus import SickGpus
from fleet.node import Manifest

GROUP = "schedulingGroup"


@dataclass(frozen=True, slots=True)
class Job:
    """A job by what names it: a namespace, the label (or scheduling group), and its value."""

    namespace: str
    key: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def job_of(pod: Manifest, labels: Sequence[str]) -> Job | None:
    """The pod's job, None where nothing names one."""
    metadata = pod["metadata"]
    namespace = str(metadata["namespace"])
    group = ((pod.get("spec") or {}).get(GROUP) or {}).get("podGroupName")
    if group:
        return Job(namespace, GROUP, str(group))
    present = metadata.get("labels") or {}
    key = next((each for each in labels if present.get(each)), None)
    return Job(namespace, key, str(present[key])) if key else None


def sick_job(
    pods: Iterable[Manifest], labels: Sequence[str], sick: SickGpus, hit: Hit
) -> Job | tuple[str, ...] | None:
    """The job to end: that of the pods that were hit or hold the sick GPU, else the only one with
    GPUs. Where a fault concerns nobody but the pods that it hit, it is theirs or nobody's.

    Pods that were hit and are gone may have left by this very step, whose answer was lost: the job
    that is left then is not taken for theirs.

    None: no pod that is concerned is left. Names: more than one job may be, or a pod has none.
    """
    running = [each for each in pods if _is_work(each)]
    struck = [each for each in running if hit.has(each)]
    held = [each for each in running if hit.has(each) or sick.held_by(each) is True]
    maybe = [each for each in running if may_hold_gpu(each) and sick.held_by(each) is None]
    rest = [] if hit.told else maybe
    concerned = struck if hit.alone else held or rest
    jobs = {job_of(each, labels) for each in concerned}
    known = bool(held) or not hit.pods
    if known and len(jobs) == 1 and None not in jobs:
        return jobs.pop()
    return tuple(sorted(_name(each, labels) for each in concerned)) or None


def _name(pod: Manifest, labels: Sequence[str]) -> str:
    metadata = pod["metadata"]
    job = job_of(pod, labels)
    return f"{metadata['namespace']}/{metadata['name']} ({f'job {job}' if job else 'no job'})"


def _is_work(pod: Manifest) -> bool:
    """Whether it runs, and is neither the node's own nor a step of ours."""
    metadata = pod["metadata"]
    ours = OPERATION_LABEL in (metadata.get("labels") or {})
    mirror = MIRROR_ANNOTATION in (metadata.get("annotations") or {})
    return not (ours or mirror or daemon_set_of(pod) or is_finished(pod))
