"""Whose a process is, by every way in which kubelets and runtimes name a pod's cgroup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.cgroup import Owner, owner_of
from tests.whose.proc import HASH, ID, POD_A, POD_B

A_, B_ = POD_A.replace("-", "_"), POD_B.replace("-", "_")
PODS = {
    "v2, systemd, containerd, burstable": f"0::/kubepods.slice/kubepods-burstable.slice"
    f"/kubepods-burstable-pod{A_}.slice/cri-containerd-{ID}.scope",
    "v2, systemd, CRI-O, guaranteed": f"0::/kubepods.slice/kubepods-pod{A_}.slice/crio-{ID}.scope",
    "v2, systemd, CRI-O, a container in a scope": f"0::/kubepods.slice/kubepods-besteffort.slice"
    f"/kubepods-besteffort-pod{A_}.slice/crio-{ID}.scope/container",
    "v2, systemd, docker": f"0::/kubepods.slice/kubepods-burstable.slice"
    f"/kubepods-burstable-pod{A_}.slice/docker-{ID}.scope",
    "v2, cgroupfs, guaranteed": f"0::/kubepods/pod{POD_A}/{ID}",
    "v2, cgroupfs, a cgroup of the job's own": f"0::/kubepods/burstable/pod{POD_A}/{ID}/ranks/3",
    "v2, the container is gone": f"0::/kubepods/burstable/pod{POD_A}/{ID} (deleted)",
    "v2, the pod's cgroup is gone": f"0::/kubepods/burstable/pod{POD_A} (deleted)",
    "v1, cgroupfs, docker": f"12:devices:/kubepods/burstable/pod{POD_A}/{ID}\n"
    f"3:cpu,cpuacct:/kubepods/burstable/pod{POD_A}/{ID}\n"
    f"1:name=systemd:/kubepods/burstable/pod{POD_A}/{ID}",
    "v1, systemd, some hierarchies unused": f"9:pids:/\n4:memory:/kubepods.slice"
    f"/kubepods-burstable.slice/kubepods-burstable-pod{A_}.slice/cri-containerd-{ID}.scope\n0::/",
    "v1, cgroupfs driver under containerd's service": "5:cpuset:/system.slice/containerd.service"
    f"/kubepods-burstable-pod{A_}.slice:cri-containerd:{ID}",
    "docker in a pod": f"0::/kubepods/besteffort/pod{POD_A}/{ID}/docker/{'b' * 64}",
    "a node in a container, cgroupfs": f"0::/docker/{ID}/kubelet/kubepods/burstable/pod{POD_A}"
    f"/{'b' * 64}",
    "a node in a container, systemd": f"0::/system.slice/docker-{ID}.scope/kubelet.slice"
    "/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
    f"/kubelet-kubepods-burstable-pod{A_}.slice/cri-containerd-{ID}.scope",
    "seen from a namespace of ours, systemd": f"0::/../../kubepods-burstable-pod{A_}.slice"
    f"/cri-containerd-{ID}.scope",
    "seen from a namespace of ours, another class": f"0::/../../../kubepods-pod{A_}.slice"
    f"/cri-containerd-{ID}.scope",
    "seen from a namespace of ours, cgroupfs": f"0::/../../pod{POD_A}/{ID}",
    "seen from a namespace of ours, cgroupfs, another class": f"0::/../../../besteffort/pod{POD_A}"
    f"/{ID}",
}
UNTOLD = {
    "nothing": "",
    "the root": "0::/",
    "ourselves in a namespace of our own": "0::/",
    "beside us in our own pod": f"0::/../cri-containerd-{ID}.scope",
    "another's service in a slice that nobody knows": "0::/gpu.slice/train.service",
    "two pods in one another": f"0::/kubepods/pod{POD_A}/{ID}/kubelet/kubepods/pod{POD_B}/{ID}",
    "two hierarchies that disagree": f"2:cpu:/kubepods/pod{POD_A}/{ID}\n"
    f"1:memory:/kubepods/pod{POD_B}/{ID}",
    "a UID that is cut": f"0::/kubepods/burstable/pod{POD_A[:-1]}/{ID}",
    "a UID that is too long": f"0::/kubepods.slice/kubepods-pod{A_}0.slice/x.scope",
    "capitals": f"0::/kubepods/burstable/pod{POD_A.upper()}/{ID}",
    "a folder of that name anywhere": f"0::/jobs/pod{POD_A}/{ID}",
    "a slice of that name without a kubelet": f"0::/my-pod{A_}.slice/x.scope",
    "no line of a cgroup file": f"kubepods/pod{POD_A}",
}
HOSTS = {
    "a person": "0::/user.slice/user-1000.slice/session-4.scope",
    "a service": "0::/system.slice/slurmd.service",
    "a service seen from a namespace of ours": "0::/../../../../system.slice/slurmd.service",
    "docker beside the kubelet": f"0::/system.slice/docker-{ID}.scope",
    "docker with cgroupfs": f"4:memory:/docker/{ID}",
    "the first process": "0::/init.scope",
}


@pytest.mark.parametrize("text", PODS.values(), ids=PODS)
def test_a_process_of_a_pod_is_told_by_the_pods_uid(text):
    assert owner_of(text + "\n") == Owner(POD_A)


@pytest.mark.parametrize(
    "text",
    [
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{HASH}.slice/x.scope",
        f"0::/kubepods/burstable/pod{HASH}/{ID}",
    ],
)
def test_a_static_pod_is_told_by_the_hash_of_its_manifest(text):
    assert owner_of(text) == Owner(HASH)


@pytest.mark.parametrize("text", UNTOLD.values(), ids=UNTOLD)
def test_what_cannot_be_told_is_nobodys(text):
    assert owner_of(text) is None


@pytest.mark.parametrize("text", HOSTS.values(), ids=HOSTS)
def test_what_no_kubelet_made_is_the_hosts_own(text):
    assert owner_of(text) == Owner()


words = st.sampled_from(["kubepods", "burstable", "..", "x.scope", "kubepods.slice", "", " ", ":"])
uids = st.uuids().map(str)


@given(
    st.lists(words, max_size=4),
    uids,
    st.lists(st.text(st.characters(exclude_characters="/\n\r"), max_size=12), max_size=3),
    st.booleans(),
)
def test_whatever_is_around_it_only_the_uid_that_is_there_is_told(before, uid, after, systemd):
    slash = f"kubepods-pod{uid.replace('-', '_')}.slice" if systemd else f"kubepods/pod{uid}"
    said = owner_of(f"0::/{'/'.join([*before, slash, *after])}")
    assert said in (None, Owner(uid))


@given(st.text())
def test_any_text_is_read_without_a_word(text):
    assert owner_of(text) in (None, Owner())
