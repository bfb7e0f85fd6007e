"""Hardware that breaks, and senses that go."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from simulator.demo.scenario import Reach
from simulator.hardware.machine import Machine
from simulator.hardware.nature import Ail, Nature
from simulator.hardware.power import Signal


@dataclass(frozen=True, slots=True)
class Breaks:
    """A GPU breaks by a nature: the kernel prints, the tools answer otherwise."""

    fault: ClassVar[bool] = True

    gpu: int
    nature: Nature

    @property
    def told(self) -> str:
        """Which GPU, and how."""
        return f"gpu:{self.gpu} breaks: {self.nature.name}"

    async def happen(self, node: str, reach: Reach) -> None:
        """Strike."""
        reach.machines[node].strike(self.gpu, self.nature)


SILENT: Mapping[Ail, str] = {
    Ail.DRIVER_HANG: "its driver hangs: NVML answers nobody, and the kernel log says nothing",
    Ail.MISSING_ADAPTER: "one of its 32 EFA adapters is gone: every link there says ACTIVE",
}


@dataclass(frozen=True, slots=True)
class Ails:
    """A machine is troubled as a whole, and nothing is printed: only a check can find it."""

    fault: ClassVar[bool] = True

    ail: Ail

    @property
    def told(self) -> str:
        """What nobody says of itself."""
        return SILENT[self.ail]

    async def happen(self, node: str, reach: Reach) -> None:
        """Trouble it."""
        reach.machines[node].ail(self.ail)


@dataclass(frozen=True, slots=True)
class ComesBack:
    """A GPU breaks, and once more when its node has just been given back."""

    fault: ClassVar[bool] = True

    breaks: Breaks

    @property
    def told(self) -> str:
        """What breaks."""
        return self.breaks.told

    async def happen(self, node: str, reach: Reach) -> None:
        """Break, wait for the probation, break again."""
        await self.breaks.happen(node, reach)
        await reach.until(lambda: reach.state(node) == "probation")
        reach.tell(node, f"{self.breaks.told}, again")
        await self.breaks.happen(node, reach)


@dataclass(frozen=True, slots=True)
class LosesLog:
    """The kernel log cannot be read any more: nothing is known, so nothing may be done."""

    fault: ClassVar[bool] = False

    @property
    def told(self) -> str:
        """That it is gone."""
        return "its kernel log cannot be read any more"

    async def happen(self, node: str, reach: Reach) -> None:
        """Take the log away."""
        reach.machines[node].lose_log()


@dataclass(frozen=True, slots=True)
class AgentStops:
    """The agent stands still, as a process that the kernel does not schedule any more."""

    fault: ClassVar[bool] = False

    @property
    def told(self) -> str:
        """That it says nothing more."""
        return "its agent stands still and says nothing more"

    async def happen(self, node: str, reach: Reach) -> None:
        """SIGSTOP."""
        for pid in _agents(reach.machines[node]):
            os.kill(pid, signal.SIGSTOP)


@dataclass(frozen=True, slots=True)
class KubeletDies:
    """The kubelet is gone and never comes back by itself; containers go on running."""

    fault: ClassVar[bool] = True

    @property
    def told(self) -> str:
        """That it died."""
        return "its kubelet dies"

    async def happen(self, node: str, reach: Reach) -> None:
        """Only the power brings it back."""
        reach.machines[node].power.ask(Signal.FAINT)


def _agents(machine: Machine) -> list[int]:
    """Processes of agents on a machine, which its kubelet noted when it started them."""
    noted = [int(path.read_text()) for path in machine.base.glob("pods/*/pid")]
    return [pid for pid in noted if _runs_probe(pid)]


def _runs_probe(pid: int) -> bool:
    try:
        return b"\0probe\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
