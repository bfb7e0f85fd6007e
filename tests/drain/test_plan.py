"""What each Pod is to a drain, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from activities.pods import (
    INTERRUPTED,
    WAITED,
    DrainTerms,
    PodClass,
    classify,
    may_hold_gpu,
    plan_drain,
)
from activities.protection import protection
from fleet.names import HOLD_TAINT
from tests.cluster import pod_manifest, running, stopped

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
TERMS = DrainTerms(
    node="n1",
    node_created=datetime(2026, 11, 1, tzinfo=UTC),
    kubelet_alive=True,
    hold_value="gpu-lost",
    gpus_must_be_free=False,
    force=False,
    lost_daemon_sets=frozenset({"lost"}),
)
RESET = replace(TERMS, gpus_must_be_free=True)
FORCE = replace(TERMS, force=True)
DEAD = replace(TERMS, kubelet_alive=False)
GPU = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]


def pod(name="p", *, status=None, annotations=None, labels=None, deleted=None, **about):
    made = pod_manifest(name, **about)
    meta = made["metadata"]
    meta |= {"uid": f"uid-{name}", "creationTimestamp": "2026-11-20T00:00:00Z"}
    meta["annotations"] |= annotations or {}
    meta["labels"] |= labels or {}
    if deleted is not None:
        at = NOW - timedelta(seconds=deleted)
        meta["deletionTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return made | {"status": status or running()}


def old(**about):
    made = pod(**about)
    made["metadata"]["creationTimestamp"] = "2026-10-01T00:00:00Z"
    return made


def owned_by(kind, api_version="apps/v1", *, controller=True, uid="u"):
    made = pod()
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": api_version,
            "kind": kind,
            "name": "o",
            "uid": uid,
            **({"controller": True} if controller else {}),
        }
    ]
    return made


DISK = [{"name": "v", "emptyDir": {}}]
RAM = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
PENDING = {"phase": "Pending"}
ANYTHING = [{"operator": "Exists"}]

TABLE = [
    ("a plain pod", pod(), TERMS, PodClass.EVICT),
    ("ours", pod(labels={"gpumend.io/operation": "x"}), TERMS, PodClass.OURS),
    (
        "mirror by annotation",
        pod(annotations={"kubernetes.io/config.mirror": "h"}),
        TERMS,
        "mirror",
    ),
    ("mirror by owner", owned_by("Node", "v1", controller=False), TERMS, PodClass.MIRROR),
    ("succeeded", pod(status={"phase": "Succeeded"}, owner=None, volumes=DISK), TERMS, "finished"),
    ("failed", pod(status={"phase": "Failed"}, owner=None), TERMS, PodClass.FINISHED),
    ("daemon", owned_by("DaemonSet"), TERMS, PodClass.DAEMON),
    ("another group's DaemonSet", owned_by("DaemonSet", "example.org/v1"), TERMS, PodClass.EVICT),
    ("owned, not controlled", owned_by("DaemonSet", controller=False), TERMS, PodClass.REFUSED),
    ("orphaned daemon", owned_by("DaemonSet", uid="lost"), TERMS, PodClass.REFUSED),
    ("orphaned daemon, forced", owned_by("DaemonSet", uid="lost"), FORCE, PodClass.EVICT),
    ("unmanaged", pod(owner=None), TERMS, PodClass.REFUSED),
    ("unmanaged, forced", pod(owner=None), FORCE, PodClass.EVICT),
    ("emptyDir", pod(volumes=DISK), TERMS, PodClass.REFUSED),
    ("emptyDir, forced", pod(volumes=DISK), FORCE, PodClass.EVICT),
    ("emptyDir in memory", pod(volumes=RAM), TERMS, PodClass.EVICT),
    ("pending has no data yet", pod(status=PENDING, volumes=DISK), TERMS, PodClass.EVICT),
    ("tolerates everything", pod(tolerations=ANYTHING), TERMS, PodClass.TOLERATES),
    (
        "tolerates our hold",
        pod(tolerations=[{"key": HOLD_TAINT, "operator": "Exists"}]),
        TERMS,
        PodClass.TOLERATES,
    ),
    (
        "tolerates this value",
        pod(tolerations=[{"key": HOLD_TAINT, "value": "gpu-lost", "effect": "NoSchedule"}]),
        TERMS,
        PodClass.TOLERATES,
    ),
    (
        "tolerates another value",
        pod(tolerations=[{"key": HOLD_TAINT, "value": "thermal"}]),
        TERMS,
        PodClass.EVICT,
    ),
    (
        "tolerates another effect",
        pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
        TERMS,
        PodClass.EVICT,
    ),
    ("tolerates and has a GPU", pod(tolerations=ANYTHING, containers=GPU), RESET, PodClass.EVICT),
    ("older than the node object", old(), TERMS, PodClass.LEFT_BEHIND),
    ("older, and has a GPU", old(containers=GPU), RESET, PodClass.EVICT),
    ("terminating", pod(deleted=-20), TERMS, PodClass.TERMINATING),
    ("terminating for long", pod(deleted=600), TERMS, PodClass.TERMINATING),
    ("its kubelet is dead", pod(deleted=600), DEAD, PodClass.UNREACHABLE),
    ("its kubelet may yet come", pod(deleted=30), DEAD, PodClass.TERMINATING),
    ("r20: terminating, has a GPU", pod(deleted=600, containers=GPU), RESET, "terminating"),
    (
        "r20: terminating, has a GPU, dead kubelet",
        pod(deleted=600, containers=GPU),
        replace(RESET, kubelet_alive=False),
        PodClass.TERMINATING,
    ),
    ("r20: not ready, has a GPU", pod(status=running(ready=False), containers=GPU), RESET, "evict"),
    (
        "stopped, kept by a finalizer",
        pod(deleted=600, status={**stopped(), "phase": "Running"}, containers=GPU),
        RESET,
        PodClass.STOPPED,
    ),
    (
        "terminating, and the kubelet never spoke",
        pod(deleted=10, status={"phase": "Running"}),
        TERMS,
        PodClass.TERMINATING,
    ),
    ("r20: only a GPU must be free, and it holds none", pod(), RESET, PodClass.SPARED),
    (
        "r20: it surely holds another GPU",
        pod(containers=GPU),
        replace(RESET, spared=frozenset({"uid-p"})),
        PodClass.SPARED,
    ),
    (
        "r20: a reboot spares nobody",
        pod(containers=GPU),
        replace(TERMS, spared=frozenset({"uid-p"})),
        PodClass.EVICT,
    ),
    (
        "emptyDir that policy lets go",
        pod(volumes=DISK),
        replace(TERMS, lose_scratch=True),
        PodClass.EVICT,
    ),
    (
        "unmanaged, with an emptyDir that policy lets go",
        pod(owner=None, volumes=DISK),
        replace(TERMS, lose_scratch=True),
        PodClass.REFUSED,
    ),
    (
        "tolerates everything, and its job is to end",
        pod(tolerations=ANYTHING),
        replace(TERMS, ends_job=True),
        PodClass.EVICT,
    ),
    (
        "protected",
        pod(annotations={"karpenter.sh/do-not-disrupt": "true"}),
        FORCE,
        PodClass.PROTECTED,
    ),
]


@pytest.mark.parametrize(
    ("manifest", "terms", "kind"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_each_pod_has_its_class(manifest, terms, kind):
    assert classify(manifest, terms, NOW)[0] == kind


def test_every_class_is_waited_for_or_not_and_none_is_both():
    assert not set(WAITED) & set(INTERRUPTED)
    rest = set(PodClass) - set(WAITED) - set(INTERRUPTED)
    assert rest == {PodClass.OURS, PodClass.FINISHED, PodClass.STOPPED, PodClass.SPARED}


def test_the_plan_holds_only_pods_of_this_node_and_grace_is_never_below_one_second():
    pods = [
        pod("a", terminationGracePeriodSeconds=0),
        pod("b", terminationGracePeriodSeconds=-3),
        pod("elsewhere", node="n2"),
        pod("unbound", node=None),
    ]
    plan = plan_drain(pods, TERMS, NOW)
    assert [each.name for each in plan] == ["a", "b"]
    assert all(each.grace >= 1 for each in plan)


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        ({}, False),
        ({"containers": GPU}, True),
        ({"initContainers": GPU}, True),
        ({"resourceClaims": [{"name": "gpu"}]}, True),
        ({"runtimeClassName": "nvidia"}, True),
        ({"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}]}, True),
        ({"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, False),
    ],
)
def test_in_doubt_a_pod_may_hold_a_gpu(spec, may):
    assert may_hold_gpu(pod(**spec)) is may


STARTED = {"phase": "Running", "startTime": "2026-11-29T11:00:00Z"}


@pytest.mark.parametrize(
    ("annotations", "labels", "status", "protected"),
    [
        ({}, {}, STARTED, False),
        ({"karpenter.sh/do-not-disrupt": "true"}, {}, STARTED, True),
        ({"karpenter.sh/do-not-disrupt": "false"}, {}, STARTED, False),
        ({"karpenter.sh/do-not-disrupt": "2h"}, {}, STARTED, True),
        ({"karpenter.sh/do-not-disrupt": "59m"}, {}, STARTED, False),
        ({"karpenter.sh/do-not-disrupt": "1h30m"}, {}, STARTED, True),
        ({"karpenter.sh/do-not-disrupt": "2h"}, {}, PENDING, True),
        ({"karpenter.sh/do-not-disrupt": "soon"}, {}, STARTED, False),
        ({"karpenter.sh/do-not-disrupt": "2h x"}, {}, STARTED, False),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, {}, STARTED, True),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, {}, STARTED, False),
        ({}, {"cluster.x-k8s.io/drain": "skip"}, STARTED, True),
        ({}, {"cluster.x-k8s.io/drain": "wait-completed"}, STARTED, True),
    ],
)
def test_the_fields_own_wishes_protect_a_pod(annotations, labels, status, protected):
    made = pod(annotations=annotations, labels=labels, status=status)
    assert (protection(made, NOW) is not None) is protected
