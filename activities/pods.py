"""What a drain does about each Pod of a node, and why. Pure.

Whether a Pod is evicted, waited for, left alone or refused is decided here; the calls are not.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from activities.node_pods import is_finished, phase_of
from activities.protection import protection
from fleet.instant import parse_instant
from fleet.names import DOMAIN, HOLD_EFFECT, HOLD_TAINT
from fleet.node import Manifest, NodeState
from fleet.request import StepRequest
from fleet.step import Step

OPERATION_LABEL = f"{DOMAIN}/operation"
"""On Pods that are steps of ours."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

DEAD_AFTER = timedelta(seconds=60)
"""The deletion timestamp has the grace in it: a kubelet that lives needs no minute beyond it."""

DEFAULT_GRACE = 30
"""Seconds; what Kubernetes takes where a Pod says nothing."""


class PodClass(StrEnum):
    """What a Pod is to a drain."""

    EVICT = "evict"
    TERMINATING = "terminating"
    PROTECTED = "protected"
    REFUSED = "refused"
    MIRROR = "mirror"
    DAEMON = "daemon"
    FINISHED = "finished"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    LEFT_BEHIND = "left-behind"
    TOLERATES = "tolerates-hold"
    OURS = "ours"
    SPARED = "spared"


WAITED = (PodClass.EVICT, PodClass.TERMINATING, PodClass.PROTECTED, PodClass.REFUSED)
"""What must be gone before a drain is done."""

INTERRUPTED = (
    PodClass.MIRROR,
    PodClass.DAEMON,
    PodClass.TOLERATES,
    PodClass.UNREACHABLE,
    PodClass.LEFT_BEHIND,
)
"""What stays, and will be interrupted by a reboot or a replacement."""


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """One Pod in the plan; `grace` in seconds and never below one."""

    namespace: str
    name: str
    uid: str
    kind: PodClass
    reason: str = ""
    grace: int = DEFAULT_GRACE
    ready: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where the Pod is."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def __str__(self) -> str:
        why = f"{self.kind}: {self.reason}" if self.reason else self.kind.value
        return f"{self.namespace}/{self.name} ({why})"


@dataclass(frozen=True, slots=True)
class DrainTerms:
    """What the classes depend on besides the Pod. `lost_daemon_sets`: UIDs of sets that are gone.

    `node_created` is the Node object's; `kubelet_alive` is its Ready being True. `lose_scratch`:
    policy says that on-disk emptyDirs may go. `spared`: UIDs of Pods that surely hold no GPU that
    must be free. `ends_job`: they are of one job, which is to leave whatever it tolerates.
    """

    node: str
    node_created: datetime | None
    kubelet_alive: bool
    hold_value: str
    gpus_must_be_free: bool
    force: bool
    lost_daemon_sets: frozenset[str] = frozenset()
    lose_scratch: bool = False
    ends_job: bool = False
    spared: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        node: NodeState,
        request: StepRequest,
        lost: Collection[str],
        spared: Collection[str] = (),
    ) -> "DrainTerms":
        """The terms of this request on this node."""
        created = manifest["metadata"].get("creationTimestamp")
        return cls(
            node=node.identity.name,
            node_created=parse_instant(created) if created else None,
            kubelet_alive=node.ready == "True",
            hold_value=node.hold.value if node.hold else "",
            gpus_must_be_free=request.makes_way_for is Step.RESET_GPU,
            force=request.force,
            lost_daemon_sets=frozenset(lost),
            lose_scratch=request.lose_scratch,
            ends_job=request.step is Step.END_JOB,
            spared=frozenset(spared),
        )


def plan_drain(
    pods: Iterable[Manifest], terms: DrainTerms, now: datetime
) -> tuple[PlannedPod, ...]:
    """Every Pod that is bound to the node, with its class; unbound ones are not on the node."""
    bound = (pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == terms.node)
    plan = (_planned(pod, *classify(pod, terms, now)) for pod in bound)
    return tuple(sorted(plan, key=lambda each: (each.namespace, each.name, each.uid)))


def plan_text(plan: Iterable[PlannedPod]) -> str:
    """The plan for people: each Pod with its class and reason, those that must go first."""
    waited = sorted(plan, key=lambda each: (each.kind not in WAITED, str(each)))
    return "; ".join(str(each) for each in waited) or "no pods"


def classify(pod: Manifest, terms: DrainTerms, now: datetime) -> tuple[PodClass, str]:
    """The class of one Pod and, where the class alone doesn't say it, the reason."""
    return (
        _needs_nothing(pod)
        or _is_spared(pod, terms)
        or _is_leaving(pod, terms, now)
        or _belongs_to_the_node(pod, terms)
        or _needs_a_word(pod, terms, now)
        or (PodClass.EVICT, "pending" if phase_of(pod) == "Pending" else "")
    )


def controller_of(pod: Manifest) -> Mapping[str, Any] | None:
    """The owner that controls the Pod; other owners do not count."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def daemon_set_of(pod: Manifest) -> Mapping[str, Any] | None:
    """The DaemonSet that controls the Pod, or None."""
    owner = controller_of(pod)
    if owner and owner.get("kind") == "DaemonSet" and _group(owner) == "apps":
        return owner
    return None


def may_hold_gpu(pod: Manifest) -> bool:
    """Whether one of its containers may have a GPU open; in doubt it may."""
    spec = pod.get("spec") or {}
    if spec.get("resourceClaims") or spec.get("runtimeClassName") == "nvidia":
        return True
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    named = (
        resource
        for container in containers
        for amounts in (container.get("resources") or {}).values()
        if isinstance(amounts, dict)
        for resource in amounts
    )
    return any(name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) for name in named)


def has_stopped(pod: Manifest) -> bool:
    """The kubelet says of every container that it has terminated; without its word: no."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    states = [(each.get("state") or {}) for each in statuses]
    return bool(states) and all("terminated" in state for state in states)


def _needs_nothing(pod: Manifest) -> tuple[PodClass, str] | None:
    metadata = pod["metadata"]
    if OPERATION_LABEL in (metadata.get("labels") or {}):
        return PodClass.OURS, ""
    owners = metadata.get("ownerReferences") or ()
    node_owned = any(each.get("kind") == "Node" for each in owners)
    if node_owned or MIRROR_ANNOTATION in (metadata.get("annotations") or {}):
        return PodClass.MIRROR, ""
    if is_finished(pod):
        return PodClass.FINISHED, ""
    return None


def _is_spared(pod: Manifest, terms: DrainTerms) -> tuple[PodClass, str] | None:
    """Only a GPU has to be free, and the Pod surely does not hold it."""
    if not terms.gpus_must_be_free:
        return None
    if not may_hold_gpu(pod):
        return PodClass.SPARED, "holds no GPU"
    spared = pod["metadata"].get("uid") in terms.spared
    return (PodClass.SPARED, "holds other GPUs") if spared else None


def _is_leaving(pod: Manifest, terms: DrainTerms, now: datetime) -> tuple[PodClass, str] | None:
    deleted = pod["metadata"].get("deletionTimestamp")
    if not deleted:
        return None
    if has_stopped(pod):
        return PodClass.STOPPED, "its containers have terminated"
    overdue = now - parse_instant(deleted) > DEAD_AFTER
    if overdue and not terms.kubelet_alive and not _must_free_gpu(pod, terms):
        return PodClass.UNREACHABLE, "terminating, and its kubelet does not answer"
    return PodClass.TERMINATING, ""


def _belongs_to_the_node(pod: Manifest, terms: DrainTerms) -> tuple[PodClass, str] | None:
    daemon_set = daemon_set_of(pod)
    if daemon_set and daemon_set.get("uid") not in terms.lost_daemon_sets:
        return PodClass.DAEMON, "may hold a GPU" if _must_free_gpu(pod, terms) else ""
    if _must_free_gpu(pod, terms) or daemon_set:
        return None
    created = pod["metadata"].get("creationTimestamp")
    if created and terms.node_created and parse_instant(created) < terms.node_created:
        return PodClass.LEFT_BEHIND, "older than the Node object"
    if not terms.ends_job and tolerates_hold(pod, terms.hold_value):
        return PodClass.TOLERATES, "tolerates our hold and would come straight back"
    return None


def _needs_a_word(pod: Manifest, terms: DrainTerms, now: datetime) -> tuple[PodClass, str] | None:
    protected = protection(pod, now)
    if protected:
        return PodClass.PROTECTED, protected
    reason = _lost_by_eviction(pod, terms.lose_scratch)
    return (PodClass.REFUSED, reason) if reason and not terms.force else None


def _lost_by_eviction(pod: Manifest, lose_scratch: bool) -> str:
    if daemon_set_of(pod):
        return "its DaemonSet is gone, so it will not come back"
    if controller_of(pod) is None:
        return "no controller, so it will not come back"
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    scratch = [each["emptyDir"] or {} for each in volumes if "emptyDir" in each]
    on_disk = any(each.get("medium") != "Memory" for each in scratch)
    if on_disk and not lose_scratch and phase_of(pod) != "Pending":
        return "its emptyDir would be lost"
    return ""


def _must_free_gpu(pod: Manifest, terms: DrainTerms) -> bool:
    return terms.gpus_must_be_free and may_hold_gpu(pod)


def tolerates_hold(pod: Manifest, value: str) -> bool:
    """Whether our hold taint with this value does not keep the Pod away."""
    for each in (pod.get("spec") or {}).get("tolerations") or ():
        anything = each.get("operator") == "Exists"
        key, effect = each.get("key", ""), each.get("effect", "")
        key_fits = key == HOLD_TAINT or (anything and not key)
        value_fits = anything or each.get("value", "") == value
        if key_fits and value_fits and effect in ("", HOLD_EFFECT):
            return True
    return False


def _planned(pod: Manifest, kind: PodClass, reason: str) -> PlannedPod:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    return PlannedPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        kind=kind,
        reason=reason,
        grace=max(1, int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE)),
        ready=_ready(pod),
        labels=metadata.get("labels") or {},
    )


def _ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _group(owner: Mapping[str, Any]) -> str:
    return str(owner.get("apiVersion", "")).partition("/")[0]
