"""A machine as a directory: `<base>/root` is its `/`, the truth about it lies beside.

Whoever changes the hardware (a fault, a tool, the power) holds the lock for the whole change, so
the files of the root never show half of one. Nobody has to be running for the tools to work;
power and the passing of time need the process that plays the machine (`power.py`).
"""

import fcntl
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.hardware import state
from simulator.hardware.adapters import show_adapters
from simulator.hardware.kernel_log import KernelLog
from simulator.hardware.nature import Ail, Nature
from simulator.hardware.power import Signal, Switch
from simulator.hardware.processes import show_processes
from simulator.hardware.root import BOOT_LINES, build_root, show_boot, show_gpus
from simulator.hardware.state import Gpu, Hardware

BUS_SLOTS = (0x53, 0x64, 0x75, 0x86, 0x97, 0xA8, 0xB9, 0xCA)


class Machine:
    """One machine; any number of processes may hold one of these on the same directory."""

    def __init__(self, base: Path) -> None:
        """`base` holds the root and the truth; see `create`."""
        self.base = base
        self.root = base / "root"
        self.power = Switch(base)
        self._truth = base / "hardware.json"
        self._log = KernelLog(self.root / "dev" / "kmsg")

    @classmethod
    def create(cls, base: Path, name: str, gpus: int = 8, on: bool = True) -> "Machine":
        """Build a healthy machine that has just booted, or waits to be. `gpus` is at most 8."""
        machine = cls(base)
        base.mkdir(parents=True)
        machine.power.create(on)
        hardware = Hardware(
            gpus=tuple(_new_gpu(name, index) for index in range(gpus)),
            boot_id=str(uuid.uuid4()),
            booted=time.time(),
        )
        build_root(machine.root, base, hardware, system_uuid(name))
        machine._save(hardware)
        machine._start_log(hardware, ())
        return machine

    def read(self) -> Hardware:
        """The truth as it stands."""
        return state.from_fields(json.loads(self._truth.read_text()))

    @property
    def boot_id(self) -> str:
        """As the running kernel says it."""
        return (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()

    def strike(self, index: int, nature: Nature) -> None:
        """Break a GPU: the kernel prints, the tools answer otherwise."""
        self._change(lambda hardware, now: state.strike(hardware, index, nature, now))
        self.power.tell(Signal.WAKE)

    def ail(self, ail: Ail) -> None:
        """Trouble the machine as a whole, silently, until it is booted."""
        self._change(lambda hardware, _: state.ail(hardware, ail))

    def reset(self, index: int) -> None:
        """Reset a GPU; raises as `state.reset`."""
        self._change(lambda hardware, now: state.reset(hardware, index, now))
        self.power.tell(Signal.WAKE)

    def pass_time(self) -> float | None:
        """Do what is due; return the seconds until something else is, None if nothing will be."""
        self._change(state.pass_time)
        due = [each.at for each in self.read().due]
        return max(0.0, min(due) - time.time()) if due else None

    def lose_log(self) -> None:
        """The kernel log cannot be read any more, until the next boot: nothing breaks by it."""
        with self._locked():
            self._log.lose()

    def hold(self, holder: str, gpus: tuple[int, ...]) -> None:
        """A process has opened these GPUs; none: it has let go."""

        self._change(lambda hardware, now: state.hold(hardware, holder, gpus, now))

    def boot(self) -> None:
        """Start anew: a new boot id, an empty kernel log, and what no boot heals shows again."""
        with self._locked():
            hardware, lines = state.boot(self.read(), str(uuid.uuid4()), time.time())
            self._save(hardware)
            self._start_log(hardware, lines)

    def _change(self, change: Callable[[Hardware, float], state.Change]) -> None:
        with self._locked():
            now = time.time()
            hardware, lines = change(self.read(), now)
            self._save(hardware)
            self._log.append(lines, now - hardware.booted)

    def _save(self, hardware: Hardware) -> None:
        fresh = self._truth.with_suffix(".next")
        fresh.write_text(json.dumps(state.to_fields(hardware)))
        fresh.replace(self._truth)
        show_gpus(self.root, hardware)
        show_processes(self.root, hardware)
        show_adapters(self.root, self.base / "aside", Ail.MISSING_ADAPTER in hardware.ails)

    def _start_log(self, hardware: Hardware, lines: tuple[str, ...]) -> None:
        self._log.begin(BOOT_LINES)
        self._log.append(lines, 8.0)
        show_boot(self.root, hardware.boot_id)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.base / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def system_uuid(name: str) -> str:
    """The machine's own UUID, the same whenever a machine of this name is built."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _new_gpu(machine: str, index: int) -> Gpu:
    unique = uuid.uuid5(uuid.NAMESPACE_DNS, f"{machine}/{index}")
    return Gpu(
        index=index,
        bdf=f"0000:{BUS_SLOTS[index]:02x}:00",
        uuid=f"GPU-{unique}",
        serial=str(unique.int % 10**13),
    )
