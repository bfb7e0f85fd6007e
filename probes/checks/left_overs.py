"""Does a process hold a GPU that no pod of this node owns, or whose pod is gone?

New work on such a GPU finds its memory taken, and a reset is refused. A pod that ends, and a person
who tries something, may take a while: only what stays for long is a left-over. Processes that
cannot be told to be anybody's are not accused.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from fleet.check import Check
from fleet.fault import Advice, FaultName, Severity
from fleet.finding import Finding
from fleet.part import HOST, Part
from probes.checks.subject import Subject, fault, ok, unknown
from probes.counters import lasting, seen_again
from probes.nvml.asks import PROCESS_LISTS
from probes.nvml.view import GpuView
from probes.processes import Heard, Process, first_namespace, heard_here, read_process

SECONDS, ROUNDS = 600.0, 3
"""How long, and over how many rounds, a process must be seen left over: a kubelet takes minutes to
end a pod with a long grace, and somebody may just be looking."""
DAEMONS = ("nvidia-persiste", "nvidia-cuda-mps", "nv-hostengine", "nv-fabricmanage", "nvidia-smi")
"""What may have a GPU open on the host's behalf, by the 15 characters that the kernel keeps."""
POD_GONE = "process:pod-gone"
PODS = "var/lib/kubelet/pods"
"""A folder for each pod that this node's kubelet has not put away yet, named by its UID."""


def check(subject: Subject) -> tuple[Finding, ...]:
    """One finding a GPU whose processes NVML tells; nothing where it tells none."""
    if _lists(subject) and not _kernels_own(subject.machine.root):
        said = "process ids here are not the kernel's own"
        return (unknown(Check.LEFT_OVERS, HOST, "left-overs:namespace", said),)
    heard = listed(subject)
    accused = {each: why for each, _ in heard.running if (why := _left_over(subject, each))}
    if POD_GONE in accused.values() and not _kept_here(subject.machine.root):
        accused = {each: why for each, why in accused.items() if why != POD_GONE}
    lasting = _lasting(subject, accused)
    return tuple(found for part in sorted(heard.told) for found in _of(part, heard, lasting))


def listed(subject: Subject) -> Heard:
    """The processes that NVML lists on each GPU, as `/proc` has them; those that ended are out.

    Nothing where ids are not the kernel's own: by them a kernel line would name somebody else.
    """
    told = _lists(subject) if _kernels_own(subject.machine.root) else {}
    running = [
        (process, part)
        for part, pids in told.items()
        for pid in sorted(pids)
        if (process := read_process(subject.machine.root, pid)) is not None
    ]
    return Heard(frozenset(told), tuple(running))


def _kernels_own(root: Path) -> bool:
    return first_namespace(root) and heard_here(root)


def _lists(subject: Subject) -> dict[Part, set[int]]:
    """The process ids on each GPU of which NVML tells them."""
    told = {}
    for gpu in subject.nvml().gpus:
        pids = _pids(gpu)
        if gpu.pci and pids is not None:
            told[subject.naming.gpu(gpu.pci)] = pids
    return told


def _pids(gpu: GpuView) -> set[int] | None:
    """Of all lists that this driver has; None where the first of them cannot be told."""
    lists = [gpu.value(name) for name in PROCESS_LISTS]
    if not isinstance(lists[0], tuple):
        return None
    return {pid for each in lists if isinstance(each, tuple) for pid in each if pid > 0}


def _left_over(subject: Subject, process: Process) -> str:
    """Why a process should not be there; empty where nothing says so."""
    # Other checks of the round may take tools up meanwhile.
    ours = {tool.outstanding for tool in list(subject.tools.values())}
    if process.owner is None or process.pid in ours or process.name.startswith(DAEMONS):
        return ""
    if not process.owner.pod:
        return "process:no-pod"
    gone = _put_away(subject.machine.root / PODS, process.owner.pod)
    return POD_GONE if gone else ""


def _put_away(pods: Path, uid: str) -> bool:
    """Whether the kubelet knows a pod no more; where its folder is elsewhere, nobody can tell."""
    return pods.is_dir() and not (pods / uid).exists()


def _kept_here(root: Path) -> bool:
    """Whether the folder of pods is the kubelet's own: it has one of which a process runs.

    A kubelet with another root may leave an empty folder here, or an old one.
    """
    try:
        known = set(os.listdir(root / PODS))
        pids = [int(each) for each in os.listdir(root / "proc") if each.isdigit()] if known else []
    except OSError:
        return False
    owners = (each.owner for each in (read_process(root, pid) for pid in pids) if each)
    return any(owner.pod in known for owner in owners if owner)


def _lasting(subject: Subject, accused: dict[Process, str]) -> dict[Process, str]:
    """Those that were accused for long enough; what is not accused now begins anew."""
    subject.left_overs = seen_again(subject.left_overs, accused, subject.at)
    stays = lasting(subject.left_overs, subject.at, ROUNDS, SECONDS)
    return {each: accused[each] for each in stays}


def _of(part: Part, heard: Heard, lasting: dict[Process, str]) -> Iterator[Finding]:
    mine = [each for each, on in heard.running if on == part]
    left = [each for each in mine if each in lasting]
    for each in left:
        said = f"{each.name} (process {each.pid}) holds it{_of_pod(each)}"
        name, code = FaultName.CONFIG_MISMATCH, lasting[each]
        yield fault(Check.LEFT_OVERS, part, name, code, Advice.HOLD, said, Severity.DEGRADED)
    if not left:
        yield ok(Check.LEFT_OVERS, part, f"{len(mine)} processes")


def _of_pod(process: Process) -> str:
    known = process.owner is not None and process.owner.pod
    return f" for pod {known}, which is gone" if known else ", and no pod owns it"
