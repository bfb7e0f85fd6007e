"""The processes of a machine that have GPUs open, as its `/proc` and its kubelet's folder show.

One a pod, in the pod's cgroup as systemd and containerd name it. They can be looked at, no more.
"""

import shutil
from pathlib import Path

from simulator.hardware.state import FIRST_PID, Hardware, Process

PODS = "var/lib/kubelet/pods"
"""The kubelet keeps a folder for each pod that it has not put away."""
_TICKS = 100
_CGROUP = (
    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    "/cri-containerd-{container}.scope\n"
)


def show_processes(root: Path, hardware: Hardware) -> None:
    """Make `/proc` and the folder of pods what they are now."""
    pods = root / PODS
    wanted = {str(each.pid): (uid, each) for uid, each in hardware.processes.items()}
    for folder in (root / "proc").glob("[0-9]*"):
        if int(folder.name) >= FIRST_PID and folder.name not in wanted:
            shutil.rmtree(folder)
    for uid, process in wanted.values():
        (pods / uid).mkdir(parents=True, exist_ok=True)
        if not (root / "proc" / str(process.pid)).exists():
            _show(root / "proc", uid, process)
    for folder in pods.iterdir() if pods.exists() else ():
        if folder.name not in hardware.processes:
            folder.rmdir()


def _show(proc: Path, uid: str, process: Process) -> None:
    """In one step: a reader sees all of a process or nothing."""
    started = int(process.started * _TICKS)
    fresh = proc / f".{process.pid}-next"
    fresh.mkdir()
    zeros = " 0" * 15
    (fresh / "stat").write_text(f"{process.pid} (python3) S 1 1 1{zeros} {started} 0 0\n")
    (fresh / "comm").write_text("python3\n")
    cgroup = _CGROUP.format(uid=uid.replace("-", "_"), container=f"{process.pid:064x}")
    (fresh / "cgroup").write_text(cgroup)
    fresh.rename(proc / str(process.pid))
