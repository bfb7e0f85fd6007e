"""A `/proc` with a few processes in it."""

import shutil
from pathlib import Path

POD_A, POD_B = "4c1f7a52-9a0e-4a6c-8f0b-0d6f2f1f2a11", "8d2f0b6e-1c43-4f0e-b1aa-3f6f0a7c9b22"
HASH = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
ID = "a" * 64
OF_THE_HOST = "0::/system.slice/ssh.service\n"


def in_pod(uid: str) -> str:
    """The cgroup of a process of a pod."""
    name = f"kubepods-pod{uid.replace('-', '_')}.slice"
    return f"0::/kubepods.slice/{name}/cri-containerd-{ID}.scope\n"


class Proc:
    """Starts with the kernel's own namespace and nobody else."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/2/comm", "kthreadd\n")
        (root / "var/lib/kubelet/pods").mkdir(parents=True, exist_ok=True)

    def run(self, pid: int, cgroup: str, started: float, name: str = "python3") -> None:
        """A process, with its start in seconds since the boot; its pod's folder is there."""
        numbers = " 0" * 18
        line = f"{pid} ({name}) S{numbers} {int(started * 100)} 0 0\n"
        self.write(f"proc/{pid}/stat", line)
        self.write(f"proc/{pid}/cgroup", cgroup)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / "proc" / str(pid))

    def know(self, uid: str) -> None:
        """The kubelet has a pod."""
        (self.root / "var/lib/kubelet/pods" / uid).mkdir()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
